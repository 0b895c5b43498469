"""Quantum circuits: gates, evolution, observables, noise and solvers."""

import pyqtorch as pyq
import torch
from pyqtorch import apply, utils
from pyqtorch.noise import AmplitudeDamping, BitFlip, Depolarizing, DigitalNoiseProtocol, ReadoutNoise
from pyqtorch.noise import PauliChannel as Channel
from pyqtorch.utils import DiffMode, SolverType

DISTRIBUTION = "pyqtorch"
FOLDER = "pyqtorch"

QUBITS = 2
ANGLES = {"theta": torch.rand(3), "phi": torch.rand(3), "omega": torch.rand(3)}


def gate(make, *where):
    return lambda: (make(*where), (pyq.random_state(QUBITS, batch_size=3), dict(ANGLES)))


def circuit(kind=pyq.QuantumCircuit, **options):
    gates = [pyq.RX(0, "theta"), pyq.H(1), pyq.CNOT(0, 1), pyq.RY(1, "phi"), pyq.CRZ(0, 1, "omega")]
    return kind(QUBITS, gates, **options)


def forward(**options):
    return lambda: (circuit(**options), (pyq.zero_state(QUBITS, batch_size=3), dict(ANGLES)))


def observable():
    return pyq.Observable([pyq.Z(0), pyq.X(1)])


def expected(**options):
    def build():
        made, measured = circuit(), observable()
        values = {name: value.clone().requires_grad_() for name, value in ANGLES.items()}

        def run(state, values):
            return pyq.expectation(made, state, values, measured, **options)

        return run, (pyq.zero_state(QUBITS), values)

    return build


def sampled(**options):
    made = circuit(**options)
    return lambda: (lambda state: (made.sample(state, n_shots=20, values=ANGLES), state.abs()), (pyq.zero_state(2),))


def evolution(generator, **options):
    def build():
        made = pyq.HamiltonianEvolution(generator(), **options)
        return made, (pyq.random_state(QUBITS), {"t": torch.rand(1), "theta": torch.rand(1)})

    return build


def hermitian():
    matrix = torch.randn(4, 4, dtype=torch.complex128)
    return matrix + matrix.mH


def solve(called, solver, **given):
    def build():
        energy = hermitian()
        state = torch.tensor([[1.0], [0], [0], [0]], dtype=torch.complex128)
        times = torch.linspace(0, 0.1, 4)

        def run(state, times):
            return called(lambda t: energy, state, tsave=times, solver=solver, **given).states

        return run, (state if called is pyq.sesolve else (state @ state.mH).unsqueeze(-1), times)

    return build


def noisy(make, *given):
    def build():
        made = make(*given)
        return lambda state: made(utils.density_mat(state)), (pyq.random_state(QUBITS),)

    return build


def on_circuit(called):
    def build():
        made = circuit()
        return lambda values: called(made, values), (dict(ANGLES),)

    return build


def on_state(called, **options):
    return lambda: (lambda state: called(state, **options), (pyq.random_state(QUBITS, batch_size=2),))


MATRIX = torch.randn(4, 4, dtype=torch.complex128)
TWO = MATRIX.unsqueeze(-1)

CALLS = {
    **{name: gate(getattr(pyq, name), 0) for name in ("X", "Y", "Z", "H", "I", "N", "S", "SDagger", "T")},
    **{name: gate(getattr(pyq, name), 0, "theta") for name in ("RX", "RY", "RZ", "PHASE")},
    **{name: gate(getattr(pyq, name), 0, 1) for name in ("CNOT", "CY", "CZ", "SWAP")},
    **{name: gate(getattr(pyq, name), 0, 1, "theta") for name in ("CRX", "CRY", "CRZ", "CPHASE")},
    "U": gate(pyq.U, 0, "phi", "theta", "omega"),
    "fixed angle": gate(pyq.RX, 0, 0.3),
    "noisy gate": gate(lambda *where: pyq.X(*where, noise=DigitalNoiseProtocol.bitflip(0.1)), 0),
    "circuit": forward(),
    "circuit, merged": lambda: (
        pyq.Merge([pyq.RX(0, "theta"), pyq.RY(0, "phi")]),
        (pyq.zero_state(QUBITS, batch_size=3), dict(ANGLES)),
    ),
    "circuit, dropout": forward(kind=pyq.DropoutQuantumCircuit, dropout_prob=0.5),
    "run from bits": on_circuit(lambda made, values: pyq.run(made, "01", values)),
    "matrix": on_circuit(lambda made, values: made.tensor(values)),
    "adjoint": on_circuit(lambda made, values: made.dagger(values)),
    "samples": sampled(),
    "samples, noisy": sampled(readout_noise=ReadoutNoise(QUBITS, 0.1, seed=0)),
    "expectation": expected(),
    "expectation, adjoint": expected(diff_mode=DiffMode.ADJOINT),
    "expectation, shift rule": expected(diff_mode=DiffMode.GPSR),
    "expectation, of samples": expected(n_shots=50, diff_mode=DiffMode.GPSR),
    "observable": lambda: (observable(), (pyq.random_state(QUBITS),)),
    "sum": gate(lambda: pyq.Add([pyq.X(0), pyq.RX(1, "theta")])),
    "scaled": gate(lambda: pyq.Scale(pyq.X(0), "theta")),
    "commuting": lambda: (lambda x: (pyq.Add([pyq.X(0), pyq.X(1)]).commuting_terms(), x + 1), (torch.ones(2),)),
    "evolution of a matrix": evolution(lambda: hermitian(), time="t", qubit_support=(0, 1)),
    "evolution of gates": evolution(lambda: pyq.Add([pyq.X(0), pyq.Z(1)]), time="t"),
    "evolution of a parameter": evolution(lambda: pyq.Scale(pyq.Z(0), "theta"), time="t"),
    "Schrödinger equation": solve(pyq.sesolve, SolverType.DP5_SE),
    "Schrödinger equation, Krylov": solve(pyq.sesolve, SolverType.KRYLOV_SE),
    "master equation": solve(pyq.mesolve, SolverType.DP5_ME, L=[MATRIX]),
    "bit flip": noisy(BitFlip, 0, 0.1),
    "depolarizing": noisy(Depolarizing, 0, 0.1),
    "Pauli channel": noisy(Channel, 0, (0.1, 0.1, 0.1)),
    "amplitude damping": noisy(AmplitudeDamping, 1, 0.1),
    "normalized": on_state(lambda state: state + pyq.is_normalized(state)),
    "overlap": on_state(lambda state: pyq.overlap(state, state)),
    "permuted": on_state(lambda state: utils.permute_state(state, (1, 0))),
    "trace of a part": on_state(lambda state: utils.dm_partial_trace(utils.density_mat(state), [0])),
    "density matrix": on_state(utils.density_mat),
    "operator on a density matrix": lambda: (
        lambda state, operator: apply.apply_operator_dm(utils.density_mat(state), operator, (0, 1)),
        (pyq.random_state(QUBITS), TWO),
    ),
    "operator": lambda: (
        lambda state, operator: apply.apply_operator(state, operator, (0, 1)),
        (pyq.random_state(QUBITS), TWO),
    ),
    "product of operators": lambda: (
        lambda a, b: apply.operator_product(a, (0, 1), b, (0, 1)),
        (TWO, TWO),
    ),
    "expanded": lambda: (
        lambda x: utils.expand_operator(x, (0,), (0, 1)),
        (torch.eye(2, dtype=torch.complex128).unsqueeze(-1),),
    ),
    "diagonal": lambda: (lambda x: x + utils.is_diag(x), (MATRIX,)),
    "diagonal, batched": lambda: (lambda x: x + utils.is_diag_batched(x), (TWO,)),
    "product state": lambda: (lambda x: x + pyq.random_state(QUBITS) + utils.product_state("01"), (torch.ones(1),)),
    "uniform state": lambda: (lambda x: x + pyq.uniform_state(QUBITS), (torch.ones(1),)),
    "random density matrix": lambda: (lambda x: x + utils.generate_dm(QUBITS, 1), (torch.ones(1),)),
}
