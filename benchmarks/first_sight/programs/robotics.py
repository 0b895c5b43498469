"""Robotics: Lie groups, filters, controllers, registration and optimizers."""

import pypose
import torch
from pypose.metric import ape, rpe
from pypose.module import EKF, ICP, LQR, LTI, LTV, MPC, NLS, PF, UKF, EPnP, GeodesicLoss, IMUPreintegrator
from pypose.optim import GN, LM, corrector, kernel, scheduler, solver, strategy

DISTRIBUTION = "pypose"
FOLDER = "pypose"

GROUPS = {"SO3": pypose.randn_SO3, "SE3": pypose.randn_SE3, "Sim3": pypose.randn_Sim3, "RxSO3": pypose.randn_RxSO3}
POINTS = torch.randn(3, 3)
CLOUD = torch.randn(20, 3)


def function(called, *arguments):
    return lambda: (called, arguments)


def on_group(name, called, *arguments):
    return lambda: (called, (GROUPS[name](3), *arguments))


def lie(name):
    """Calls on the elements of a group."""
    return {
        f"{name}, log": on_group(name, lambda x: x.Log()),
        f"{name}, exp": on_group(name, lambda x: x.Log().Exp()),
        f"{name}, product": on_group(name, lambda x: x @ x.Inv()),
        f"{name}, act": on_group(name, lambda x, p: x.Act(p), POINTS),
        f"{name}, adjoint": on_group(name, lambda x: x.Adj(x.Log())),
        f"{name}, jacobian": on_group(name, lambda x: x.Jinvp(x.Log())),
        f"{name}, matrix": on_group(name, lambda x: x.matrix()),
        f"{name}, parts": on_group(name, lambda x: (x.translation(), x.rotation(), x.scale())),
        f"{name}, retract": on_group(name, lambda x: x.Retr(x.Log())),
        f"{name}, add": on_group(name, lambda x: x + x.Log()),
        f"{name}, new": on_group(name, pypose.randn_like),
        f"{name}, identity": on_group(name, pypose.identity_like),
        f"{name}, cumulative product": on_group(name, lambda x: pypose.cumprod(x, dim=0)),
    }


class Pendulum(NLS):
    def state_transition(self, state, input, t=None):
        return state + 0.1 * torch.stack([state[..., 1], -state[..., 0].sin() + input[..., 0]], dim=-1)

    def observation(self, state, input, t=None):
        return state.cos()


class Track(torch.nn.Module):
    """The inverse of a pose, as a parameter."""

    def __init__(self):
        super().__init__()
        self.pose = pypose.Parameter(pypose.randn_SE3(2))

    def forward(self, input):
        return (self.pose @ input).Log().tensor()


def linear():
    a = torch.eye(4) + 0.1 * torch.randn(4, 4)
    return LTI(a, torch.randn(4, 2), torch.eye(4), torch.zeros(4, 2))


def estimator(make, **options):
    def build():
        made = make(Pendulum(), torch.eye(2) * 0.1, torch.eye(2) * 0.1, **options)
        return made, (torch.randn(2), torch.randn(2), torch.randn(1), torch.eye(2))

    return build


def lqr(make):
    def build():
        steps = 3
        cost, linear_cost = torch.eye(6).repeat(1, steps, 1, 1), torch.randn(1, steps, 6)
        return make(linear(), cost, linear_cost, steps), (torch.randn(1, 4),)

    return build


def mpc():
    steps = 3
    made = MPC(linear(), torch.eye(6).repeat(1, steps, 1, 1), torch.randn(1, steps, 6), steps)
    return made, (1, torch.randn(1, 4))


def optimizer(make, **options):
    def build():
        made = make(Track(), **options)
        return made.step, (pypose.randn_SE3(2),)

    return build


def plateau():
    made = scheduler.StopOnPlateau(LM(Track()), steps=2)
    return made.step, (torch.tensor(1.0),)


def imu(**options):
    def build():
        given = torch.full((1, 5, 1), 0.1), torch.randn(1, 5, 3), torch.randn(1, 5, 3)
        return IMUPreintegrator(torch.zeros(3), pypose.identity_SO3(), torch.zeros(3), **options), given

    return build


def camera():
    points = torch.rand(1, 12, 3) + torch.tensor([0.0, 0.0, 2.0])
    intrinsics = torch.tensor([[100.0, 0.0, 50.0], [0.0, 100.0, 50.0], [0.0, 0.0, 1.0]])
    return points, intrinsics, pypose.point2pixel(points, intrinsics)


def epnp(refine):
    def build():
        points, intrinsics, pixels = camera()
        return EPnP(intrinsics, refine=refine), (points, pixels)

    return build


def project():
    points, intrinsics, pixels = camera()
    return pypose.reprojerr, (points, pixels, intrinsics, pypose.identity_SE3(1))


def trajectory(measure, **options):
    times = torch.arange(8, dtype=torch.float64)
    poses = pypose.randn_SE3(8, dtype=torch.float64)
    noisy = poses @ pypose.randn_SE3(8, sigma=0.1, dtype=torch.float64)
    return lambda: (lambda s, r, t, e: measure(s, r, t, e, **options), (times, poses, times.clone(), noisy))


RESIDUAL, JACOBIAN = torch.randn(4, 2), torch.randn(8, 3)
SQUARE, RIGHT = torch.eye(4) * 2 + 0.1, torch.randn(4, 1)

CALLS = {
    **{name: call for group in GROUPS for name, call in lie(group).items()},
    "skew": function(pypose.vec2skew, POINTS),
    "from rotation matrices": function(lambda m: pypose.mat2SO3(m, check=True), torch.eye(3).repeat(2, 1, 1)),
    "from pose matrices": function(lambda m: pypose.mat2SE3(m), torch.eye(4).repeat(2, 1, 1)),
    "from similarity matrices": function(lambda m: pypose.mat2Sim3(m), torch.eye(4).repeat(2, 1, 1)),
    "from Euler angles": function(pypose.euler2SO3, POINTS),
    "to Euler angles": on_group("SO3", lambda x: x.euler()),
    "unit quaternions": function(pypose.quat2unit, torch.randn(3, 7)),
    "products of vectors and matrices": function(pypose.bvmv, POINTS, torch.randn(3, 3, 3), POINTS),
    "plus or minus": function(pypose.pm, POINTS),
    "homogeneous": function(lambda x: pypose.homo2cart(pypose.cart2homo(x)), POINTS),
    "pixels": project,
    "nearest neighbours": function(lambda x: pypose.knn(x, x, k=2), CLOUD),
    "alignment": function(pypose.svdtf, CLOUD, CLOUD + 1),
    "alignment with scale": function(pypose.svdstf, CLOUD, CLOUD * 2),
    "neighbour filter": function(lambda x: pypose.nbr_filter(x, 2, 1.0), CLOUD),
    "random filter": function(lambda x: pypose.random_filter(x, 5), CLOUD),
    "voxel filter": function(lambda x: pypose.voxel_filter(x, [1.0, 1.0, 1.0]), CLOUD),
    "voxel filter, random": function(lambda x: pypose.voxel_filter(x, [1.0, 1.0, 1.0], random=True), CLOUD),
    "knn filter": function(lambda x: pypose.knn_filter(x, 2, radius=1.0), CLOUD),
    "Hermite spline": function(lambda x: pypose.chspline(x, 0.3), torch.randn(1, 4, 3)),
    "B-spline": on_group("SE3", lambda x, more: pypose.bspline(more, 0.3), pypose.randn_SE3(1, 5)),
    "B-spline, extrapolated": on_group("SE3", lambda x, y: pypose.bspline(y, 0.3, True), pypose.randn_SE3(1, 5)),
    "any nan": function(lambda x: pypose.hasnan([x, x]), POINTS),
    "linear system": lambda: (linear(), (torch.randn(4), torch.randn(2))),
    "linear system, varying": lambda: (
        LTV(torch.eye(4), torch.randn(4, 2), torch.eye(4), torch.zeros(4, 2)),
        (torch.randn(4), torch.randn(2)),
    ),
    "pendulum": lambda: (Pendulum(), (torch.randn(2), torch.randn(1))),
    "extended Kalman filter": estimator(EKF),
    "unscented Kalman filter": estimator(UKF),
    "particle filter": estimator(PF, particles=20),
    "linear quadratic regulator": lqr(LQR),
    "model predictive control": mpc,
    "registration": lambda: (ICP(), (CLOUD, CLOUD + 0.1)),
    "inertial measurements": imu(),
    "inertial measurements, reset": imu(reset=True, prop_cov=False),
    "camera pose": epnp(False),
    "camera pose, refined": epnp(True),
    "geodesic loss": lambda: (GeodesicLoss(), (pypose.randn_SO3(3), pypose.randn_SO3(3))),
    "Gauss-Newton": optimizer(GN),
    "Levenberg-Marquardt": optimizer(LM),
    "Levenberg-Marquardt, trust region": optimizer(LM, strategy=strategy.TrustRegion(), solver=solver.Cholesky()),
    "Levenberg-Marquardt, adaptive": optimizer(LM, strategy=strategy.Adaptive(), kernel=kernel.Huber()),
    "stop on plateau": plateau,
    **{
        f"kernel {name}": lambda name=name: (getattr(kernel, name)(), (torch.rand(6),))
        for name in ("Huber", "PseudoHuber", "Cauchy", "SoftLOne", "Arctan", "Scale")
    },
    **{
        f"corrector {name}": lambda name=name: (getattr(corrector, name)(kernel.Huber()), (RESIDUAL, JACOBIAN))
        for name in ("FastTriggs", "Triggs")
    },
    **{
        f"solver {name}": lambda name=name: (getattr(solver, name)(), (SQUARE, RIGHT))
        for name in ("PINV", "LSTSQ", "Cholesky", "CG")
    },
    "absolute pose error": trajectory(ape),
    "absolute pose error, aligned": trajectory(ape, align=True, scale=True),
    "relative pose error": trajectory(rpe),
}
