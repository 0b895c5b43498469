"""Calls of diffusers that reach what ``fix --unsafe`` edits."""

# mypy: ignore-errors

import inspect

import torch
from common import J, K
from diffusers import schedulers
from diffusers.schedulers.scheduling_utils import SchedulerMixin

NAMES = sorted(name for name in dir(schedulers) if name.endswith("Scheduler") and "Flax" not in name)
SCHEDULERS = [one for one in NAMES if issubclass(getattr(schedulers, one, object), SchedulerMixin)]
OPTIONS = (
    {"prediction_type": "v_prediction"},
    {"prediction_type": "sample"},
    {"variance_type": "learned"},
    {"variance_type": "learned_range"},
    {"variance_type": "fixed_large"},
    {"variance_type": "fixed_small_log"},
    {"thresholding": True},
    {"clip_sample": True},
    {"use_karras_sigmas": True},
    {"use_exponential_sigmas": True},
    {"use_beta_sigmas": True},
    {"timestep_spacing": "trailing"},
    {"timestep_spacing": "linspace"},
    {"lower_order_final": False},
    {"final_sigmas_type": "sigma_min"},
    {"algorithm_type": "sde-dpmsolver++"},
    {"algorithm_type": "dpmsolver"},
    {"solver_order": 3},
    {"solver_type": "heun"},
    {"rescale_betas_zero_snr": True},
    {"use_dynamic_shifting": True},
    {"skip_prk_steps": True},
)


def sample(size=4):
    return torch.randn(1, 4, size, size)


def scheduler(name, **options):
    made = getattr(schedulers, name)(**options)
    named = inspect.signature(made.set_timesteps).parameters
    given = {"num_inference_steps": 5, "mu": 0.5} if "mu" in named and options.get("use_dynamic_shifting") else {}
    made.set_timesteps(**(given or {"num_inference_steps": 5}))
    return made


def steps(name, x, noise, options, count=3, scales=True, **more):
    made = scheduler(name, **options)
    found = []
    for t in made.timesteps[:count]:
        given = made.scale_model_input(x, t) if scales and hasattr(made, "scale_model_input") else x
        out = noise + 0 * given
        if options.get("variance_type", "").startswith("learned"):
            out = torch.cat([out, out], 1)
        found.append(made.step(out, t, x, **more))
        x = found[-1][0]
    return [one[0] for one in found]


def step_of_a_number(name, x, noise):
    made = scheduler(name)
    return made.step(noise, int(made.timesteps[1]), x)[0]


def with_noise(name, x, noise, place, begins=None):
    made = scheduler(name)
    if begins is not None:
        made.set_begin_index(begins)
    return made.add_noise(x, noise, made.timesteps[place].reshape(-1))


def velocity(name, x, noise, timesteps):
    return scheduler(name).get_velocity(x, noise, timesteps)


def previous(name, t):
    made = scheduler(name)
    return made.previous_timestep(made.timesteps[0] if t is None else t)


def timesteps(name, **options):
    made = getattr(schedulers, name)()
    made.set_timesteps(**options)
    return made.timesteps


for name in SCHEDULERS:
    kind = getattr(schedulers, name)
    known = inspect.signature(kind.__init__).parameters
    J(f"{name}.step", lambda name=name: (steps, name, sample(), sample(), {}))
    J(f"{name}.step unscaled", lambda name=name: (steps, name, sample(), sample(), {}, 1, False))
    J(f"{name}.step of a number", lambda name=name: (step_of_a_number, name, sample(), sample()))
    for options in OPTIONS:
        if all(one in known for one in options):
            J(
                f"{name}.step {options}",
                lambda name=name, options=options: (steps, name, sample(), sample(), options, 5),
            )
    if "s_churn" in inspect.signature(getattr(kind, "step", print)).parameters:
        J(
            f"{name}.step churned",
            lambda name=name: (steps, name, sample(), sample(), {}, 2, True, K(s_churn=1.0, s_noise=1.1)),
        )
    if hasattr(kind, "add_noise"):
        for place, begins in ((0, None), (4, None), (slice(0, 2), None), (0, 1)):
            J(
                f"{name}.add_noise",
                lambda name=name, place=place, begins=begins: (with_noise, name, sample(), sample(), place, begins),
            )
    if hasattr(kind, "get_velocity"):
        J(f"{name}.get_velocity", lambda name=name: (velocity, name, sample(), sample(), torch.tensor([3])))
    if hasattr(kind, "previous_timestep"):
        for t in (None, torch.tensor(1)):
            J(f"{name}.previous_timestep", lambda name=name, t=t: (previous, name, t))
    named = inspect.signature(kind.set_timesteps).parameters if hasattr(kind, "set_timesteps") else {}
    for given in ({"timesteps": [901, 501, 1]}, {"sigmas": [1.0, 0.5, 0.1, 0.0]}, {"timesteps": [900, 500, 0]}):
        if all(one in named for one in given):
            J(f"{name}.set_timesteps", lambda name=name, given=given: (timesteps, name, K(**given)))
