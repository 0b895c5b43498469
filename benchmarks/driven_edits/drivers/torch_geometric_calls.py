"""Calls of torch-geometric that reach what ``fix --unsafe`` edits. Needs scipy, scikit-learn, pandas and xxhash."""

# mypy: ignore-errors

import sys
import tempfile
import types
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import torch
import torch_geometric as pyg
from common import J, K
from torch import nn
from torch.nn import functional as F
from torch_geometric import _onnx, edge_index, hash_tensor, index, metrics, utils
from torch_geometric.contrib.nn.models.rbcd_attack import PRBCDAttack
from torch_geometric.data import Data, Dataset, HeteroData, InMemoryDataset, hetero_data
from torch_geometric.data.hypergraph_data import HyperGraphData
from torch_geometric.data.lightning import LightningDataset, LightningLinkData, LightningNodeData
from torch_geometric.datasets import JODIEDataset, WebQSPDataset
from torch_geometric.distributed import Partitioner, rpc
from torch_geometric.explain import Explainer, GNNExplainer, GraphMaskExplainer, PGExplainer
from torch_geometric.explain.metric import fidelity, fidelity_curve_auc
from torch_geometric.explain.metric.fidelity import auc
from torch_geometric.io import fs
from torch_geometric.llm.large_graph_indexer import MappedFeature
from torch_geometric.llm.models.glem import GLEM
from torch_geometric.llm.models.llm import LLM
from torch_geometric.loader import ClusterData, ibmb_loader
from torch_geometric.loader.utils import infer_filter_per_worker
from torch_geometric.nn import aggr, conv, kge, pool
from torch_geometric.nn.models import DeepGraphInfomax, gpse
from torch_geometric.sampler import HeteroSamplerOutput, NeighborSampler
from torch_geometric.testing import assert_module
from torch_geometric.transforms import FeaturePropagation, RandomLinkSplit
from torch_geometric.utils import _homophily, _negative_sampling, embedding


def nodes(rows=6, columns=4):
    return torch.rand(rows, columns)


def edges(count=12, most=6):
    return torch.randint(0, most, (2, count))


def graph(**more):
    return Data(x=nodes(), edge_index=edges(), **more)


def batches():
    return torch.tensor([0, 0, 0, 1, 1, 1])


def relational(*sizes, **options):
    """A layer whose parameters all have values: it leaves some of its memory as it finds it."""
    layer = conv.RGATConv(*sizes, **options)
    for one in layer.parameters():
        nn.init.uniform_(one)
    return layer


# Messages and aggregations
for kind, more in {
    "GCNConv": (),
    "SAGEConv": (),
    "GATConv": (),
    "GATv2Conv": (),
    "GraphConv": (),
    "TransformerConv": (),
    "TAGConv": (),
    "ARMAConv": (),
    "SGConv": (),
    "LEConv": (),
    "GENConv": (),
    "ResGatedGraphConv": (),
    "SuperGATConv": (),
    "MFConv": (),
    "ClusterGCNConv": (),
    "FeaStConv": (),
}.items():
    J(kind, lambda kind=kind, more=more: (getattr(conv, kind)(4, 3, *more), nodes(), edges()))
    J(f"{kind} of unknown nodes", lambda kind=kind, more=more: (getattr(conv, kind)(4, 3, *more), nodes(), edges() + 3))
    J(
        f"{kind} of negative nodes",
        lambda kind=kind, more=more: (getattr(conv, kind)(4, 3, *more), nodes(), edges() - 3),
    )
for normalization in (None, "sym", "rw"):
    J(
        f"ChebConv {normalization}",
        lambda normalization=normalization: (
            conv.ChebConv(4, 3, 3, normalization=normalization),
            nodes(),
            edges(),
            torch.rand(12),
            None,
            torch.tensor(2.0),
        ),
        True,
    )
    J(
        f"ChebConv {normalization} with loops",
        lambda normalization=normalization: (
            conv.ChebConv(4, 3, 2, normalization=normalization),
            nodes(),
            torch.cat([edges(), torch.arange(6).repeat(2, 1)], 1),
            torch.rand(18),
            None,
            torch.tensor(2.0),
        ),
        True,
    )
    J(
        f"ChebConv norm {normalization}",
        lambda normalization=normalization: (
            lambda e, w, most: conv.ChebConv(4, 3, 2).__class__.__norm__(
                conv.ChebConv(4, 3, 2), e, 6, w, normalization, most, batch=None
            ),
            edges(),
            torch.rand(12),
            torch.tensor(1.5),
        ),
        True,
    )
for mechanism in ("within-relation", "across-relation"):
    for mode in ("additive-self-attention", "multiplicative-self-attention"):
        for mod in ("additive", "scaled", "f-additive", None):
            J(
                f"RGATConv {mechanism} {mode}",
                lambda mechanism=mechanism, mode=mode, mod=mod: (
                    relational(4, 3, 3, attention_mechanism=mechanism, attention_mode=mode, mod=mod, heads=2, dim=1),
                    nodes(),
                    edges(),
                    torch.randint(0, 3, (12,)),
                ),
                True,
            )
J("RGATConv of one relation", lambda: (relational(4, 3, 3), nodes(), edges(), torch.zeros(12).long()), True)
J(
    "RGATConv of attributes",
    lambda: (relational(4, 3, 3, edge_dim=2), nodes(), edges(), torch.randint(0, 3, (12,)), torch.rand(12, 2)),
    True,
)
for scaler in ("identity", "amplification", "linear", "inverse_linear"):
    J(
        f"PNAConv {scaler}",
        lambda scaler=scaler: (
            conv.PNAConv(4, 4, ["mean", "max"], [scaler], torch.tensor([0, 1, 4, 3])),
            nodes(),
            edges(),
        ),
        True,
    )


class Loader(list):
    """Batches, as a data loader gives them."""


J(
    "PNAConv degrees",
    lambda: (lambda e: conv.PNAConv.get_degree_histogram(Loader([Data(edge_index=e, num_nodes=6)])), edges()),
)
J(
    "PNAConv degrees of two",
    lambda: (
        lambda e, other: conv.PNAConv.get_degree_histogram(
            Loader([Data(edge_index=e, num_nodes=6), Data(edge_index=other, num_nodes=9)])
        ),
        edges(),
        edges(20, 9),
    ),
)
J("SplineConv", lambda: (lambda x: conv.SplineConv(4, 3, 2, 3), nodes()))
for kind in (aggr.SortAggregation, aggr.LSTMAggregation, aggr.GRUAggregation, aggr.SetTransformerAggregation):
    make = {
        "SortAggregation": lambda: aggr.SortAggregation(2),
        "LSTMAggregation": lambda: aggr.LSTMAggregation(4, 3),
        "GRUAggregation": lambda: aggr.GRUAggregation(4, 3),
        "SetTransformerAggregation": lambda: aggr.SetTransformerAggregation(4, heads=2),
    }[kind.__name__]
    J(kind.__name__, lambda make=make: (make(), nodes(), batches()))
    J(f"{kind.__name__} unsorted", lambda make=make: (make(), nodes(), batches().flip(0)))
for interpolation in ("linear", "lower", "higher", "nearest", "midpoint"):
    J(
        f"quantile {interpolation}",
        lambda interpolation=interpolation: (aggr.QuantileAggregation([0.25, 0.5], interpolation), nodes(), batches()),
        True,
    )
    J(
        f"quantile {interpolation} of a size",
        lambda interpolation=interpolation: (
            aggr.QuantileAggregation(0.5, interpolation),
            nodes(),
            batches(),
            K(dim_size=4),
        ),
    )
J("median", lambda: (aggr.MedianAggregation(), nodes(), torch.tensor([2, 0, 0, 2, 5, 5])), True)


# Models
def infomax(x, e, **more):
    def corrupt(x, edge_index, w=None):
        return (x[torch.randperm(len(x))], edge_index) + (() if w is None else (w * 2,))

    encoder = conv.GCNConv(4, 3)
    model = DeepGraphInfomax(
        3, lambda *given, **named: encoder.to(x)(*given, *named.values()), lambda z, *a, **k: z.mean(0), corrupt
    )
    return model.to(x)(x, e, **more)


J("DeepGraphInfomax", lambda: (infomax, nodes(), edges()), True)
J("DeepGraphInfomax of weights", lambda: (lambda x, e, w: infomax(x, e, w=w), nodes(), edges(), torch.rand(12)), True)
for kind in (kge.TransE, kge.ComplEx, kge.DistMult, kge.RotatE):
    J(
        f"{kind.__name__}.test",
        lambda kind=kind: (
            lambda h, r, t: kind(6, 3, 4).test(h, r, t, batch_size=4, k=2, log=False),
            torch.randint(0, 6, (4,)),
            torch.randint(0, 3, (4,)),
            torch.randint(0, 6, (4,)),
        ),
    )
    J(
        f"{kind.__name__}.test of none",
        lambda kind=kind: (
            lambda h, r, t: kind(6, 3, 4).test(h, r, t, batch_size=4, log=False),
            *torch.zeros(3, 0).long(),
        ),
    )
for shift in (0, 1):
    J("cosim", lambda shift=shift: (gpse.cosim_col_sep, nodes(), nodes(), batches() - shift), True)
    J(
        "cosim of zeros",
        lambda shift=shift: (gpse.cosim_col_sep, nodes(), nodes() * torch.tensor([0.0, 1, 1, 0]), batches() - shift),
        True,
    )
J("cosim of zeros alone", lambda: (gpse.cosim_col_sep, nodes(), torch.zeros(6, 4), batches()), True)
J("gpse_loss", lambda: (gpse.gpse_loss, nodes(), nodes(), batches()), True)


class Many(InMemoryDataset):
    def __init__(self, graphs):
        super().__init__()
        self.data, self.slices = self.collate(graphs)


def precomputed(x, e):
    dataset = Many([Data(x=x, edge_index=e), Data(x=x * 2, edge_index=e)])
    model = SimpleNamespace(to=lambda device: model, eval=lambda: None)
    with (
        mock.patch.object(gpse, "gpse_process_batch", lambda model, batch, *a, **k: (batch.x, batch.ptr)),
        mock.patch.object(gpse, "trange", lambda *a, **k: SimpleNamespace(update=lambda n: None, close=lambda: None)),
    ):
        gpse.precompute_GPSE(model, dataset)
    return [one.pestat_GPSE for one in dataset]


J("precompute_GPSE", lambda: (precomputed, nodes(), edges(most=6)))


def attack(x, e, y):
    found = PRBCDAttack(conv.GCNConv(4, 3).to(x), block_size=8, epochs=2, epochs_resampling=1, log=False)
    return found.attack(x, e, y, budget=2)


def modified(e, w, block, block_weights, undirected):
    found = PRBCDAttack(nn.Identity(), 8, log=False)
    found.is_undirected, found.num_nodes, found.device = undirected, 6, w.device
    return found._get_modified_adj(e, w, block, block_weights)


J("attack", lambda: (attack, nodes(), edges(), torch.randint(0, 3, (6,))), True)
for undirected in (False, True):
    J(
        "modified adjacency",
        lambda undirected=undirected: (modified, edges(), torch.ones(12), edges(4), torch.rand(4), undirected),
        True,
    )
    J(
        "modified adjacency, all over one",
        lambda undirected=undirected: (
            lambda e, w, b: modified(e, w, e, b, undirected),
            edges(),
            torch.ones(12),
            torch.ones(12),
        ),
        True,
    )


# Explanations
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = conv.GCNConv(4, 8), conv.GCNConv(8, 3)

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index).log_softmax(-1)


CONFIG = {"mode": "multiclass_classification", "task_level": "node", "return_type": "log_probs"}


def explained(algorithm, x, e, kind="model", target=None, index=None, **masks):
    masks = masks or {"node_mask_type": "attributes", "edge_mask_type": "object"}
    explainer = Explainer(Net().to(x), algorithm, explanation_type=kind, model_config=CONFIG, **masks)
    return explainer, explainer(x, e, target=target, index=index)


def measured(x, e, kind, target=None, index=None):
    explainer, explanation = explained(GNNExplainer(epochs=1), x, e, kind, target, index)
    return fidelity(explainer, explanation)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = conv.GCNConv(4, 3)

    def forward(self, x, edge_index):
        return self.conv(x, edge_index).log_softmax(-1)


def masked(x, e, initial):
    algorithm = GraphMaskExplainer(1, epochs=2, layer_type="GCN", log=False)
    algorithm.init_lambda = initial
    explainer = Explainer(
        Layer().to(x),
        algorithm,
        explanation_type="model",
        model_config=CONFIG,
        node_mask_type="attributes",
        edge_mask_type="object",
    )
    return explainer(x, e, index=torch.tensor([1])).edge_mask


J("fidelity of a model", lambda: (lambda x, e: measured(x, e, "model"), nodes(), edges()), True)
J(
    "fidelity of a node",
    lambda: (lambda x, e: measured(x, e, "model", index=torch.tensor([1, 2])), nodes(), edges()),
    True,
)
J(
    "fidelity of a phenomenon",
    lambda: (lambda x, e, y: measured(x, e, "phenomenon", y), nodes(), edges(), torch.randint(0, 3, (6,))),
    True,
)
J(
    "explain with a target",
    lambda: (
        lambda x, e, y: explained(GNNExplainer(epochs=1), x, e, "model", y)[1].edge_mask,
        nodes(),
        edges(),
        torch.randint(0, 3, (6,)),
    ),
    True,
)
for initial in (0.55, -3.0, 40.0):
    J("GraphMaskExplainer", lambda initial=initial: (masked, nodes(), edges(), initial), True)
J("curve", lambda: (fidelity_curve_auc, torch.rand(4), torch.rand(4), torch.arange(4.0)))
J("curve of one", lambda: (fidelity_curve_auc, torch.rand(4), torch.tensor([0.1, 1, 0, 0]), torch.arange(4.0)))
J("area", lambda: (auc, torch.arange(4.0), torch.rand(4)), True)
J("area of unsorted points", lambda: (auc, torch.tensor([0.0, 2, 1]), torch.rand(3)))

TYPES = [("a", "to", "b"), ("b", "to", "a")]


class Hetero(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = pyg.nn.HeteroConv({one: conv.SAGEConv((4, 4), 4) for one in TYPES})

    def forward(self, x_dict, edge_index_dict):
        return self.conv(x_dict, edge_index_dict)["a"]


def hetero(x, other, e):
    data = HeteroData()
    data["a"].x, data["b"].x = x, other
    for one in TYPES:
        data[one].edge_index = e
    return data


def explained_hetero(x, other, e):
    data, algorithm = hetero(x, other, e), PGExplainer(epochs=1)
    explainer = pyg.explain.HeteroExplanation and Explainer(
        Hetero().to(x), algorithm, explanation_type="phenomenon", edge_mask_type="object", model_config=CONFIG
    )
    target = torch.zeros(len(x), dtype=torch.long)
    algorithm.train(0, explainer.model, data.x_dict, data.edge_index_dict, target=target, index=0)
    return explainer(data.x_dict, data.edge_index_dict, target=target, index=0).edge_mask_dict


J("PGExplainer", lambda: (explained_hetero, nodes(), nodes(), edges()), True)


# Indices
for sizes in ((6, 6), None):
    for order in ("row", "col", None):
        J(
            f"EdgeIndex by {order}",
            lambda sizes=sizes, order=order: (
                lambda e: edge_index.EdgeIndex(e, sparse_size=sizes, sort_order=order).validate().as_tensor(),
                edges().sort()[0],
            ),
        )
        J(
            f"EdgeIndex by {order}, unsorted",
            lambda sizes=sizes, order=order: (
                lambda e: edge_index.EdgeIndex(e, sparse_size=sizes, sort_order=order).validate().as_tensor(),
                edges(),
            ),
        )
for shift in (0, 1, -1):
    J(
        "undirected EdgeIndex",
        lambda shift=shift: (
            lambda e: edge_index.EdgeIndex(e, sparse_size=(6, 6), is_undirected=True).validate().as_tensor(),
            torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1 + shift]]),
        ),
    )
    J(
        "EdgeIndex of other nodes",
        lambda shift=shift: (
            lambda e: edge_index.EdgeIndex(e, sparse_size=(6, 6)).validate().as_tensor(),
            edges() + shift,
        ),
    )
    J(
        "Index",
        lambda shift=shift: (lambda x: index.Index(x, dim_size=6).validate().as_tensor(), torch.arange(6) + shift),
    )
    J(
        "narrow",
        lambda shift=shift: (
            lambda e, start: (
                edge_index.EdgeIndex(e, sparse_size=(6, 6), sort_order="row").sparse_narrow(0, start, 2).as_tensor()
            ),
            torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]),
            torch.tensor(shift),
        ),
    )
J("sorted Index", lambda: (lambda x: index.Index(x, is_sorted=True).validate().as_tensor(), torch.tensor([0, 1, 1, 3])))
J(
    "unsorted Index",
    lambda: (lambda x: index.Index(x, is_sorted=True).validate().as_tensor(), torch.tensor([0, 3, 1, 1])),
)
J("MappedFeature", lambda: (lambda x, y: MappedFeature("x", x) == MappedFeature("x", y), torch.ones(3), torch.ones(3)))
J(
    "MappedFeature of others",
    lambda: (lambda x, y: MappedFeature("x", x) == MappedFeature("x", y), torch.ones(3), torch.ones(4)),
)
J("MappedFeature by another name", lambda: (lambda x: MappedFeature("x", x) == MappedFeature("y", x), torch.ones(3)))
J("hash map", lambda: (hash_tensor.get_hash_map, torch.arange(4)))


# Metrics
def measured_links(kind, found, true, **options):
    metric = kind(k=2, **options)
    metric.update(found, true)
    return metric.compute()


FOUND = torch.tensor([[0, 1, 2], [3, 4, 5]])
for kind, options in (
    (metrics.LinkPredPrecision, {}),
    (metrics.LinkPredRecall, {}),
    (metrics.LinkPredCoverage, {"num_dst_nodes": 6}),
    (metrics.LinkPredDiversity, {"category": torch.arange(6)}),
    (metrics.LinkPredAveragePopularity, {"popularity": torch.arange(6.0)}),
    (metrics.LinkPredPersonalization, {}),
):
    J(
        kind.__name__,
        lambda kind=kind, options=options: (
            lambda found, true: measured_links(kind, found, true, **options),
            FOUND.clone(),
            torch.tensor([[0, 0, 1], [1, 5, 3]]),
        ),
    )
    J(
        f"{kind.__name__} of none",
        lambda kind=kind, options=options: (
            lambda found, true: measured_links(kind, found, true, **options),
            FOUND.clone(),
            torch.zeros(2, 0).long(),
        ),
    )
    J(
        f"{kind.__name__} of nothing",
        lambda kind=kind, options=options: (lambda x: kind(k=2, **options).compute(), FOUND.clone()),
    )


# Utilities
def separate(x, e, y):
    return embedding.get_embeddings(nn.Linear(4, 3).to(x), x)


J("homophily", lambda: (_homophily.homophily, edges(), torch.randint(0, 3, (6,)), batches(), "edge_insensitive"))
for method in ("edge", "node", "edge_insensitive"):
    J(
        f"homophily {method}",
        lambda method=method: (_homophily.homophily, edges(), torch.randint(0, 3, (6,)), K(method=method)),
    )
for bipartite, undirected in ((False, False), (False, True), (True, False)):
    J(
        "edge_index_to_vector",
        lambda bipartite=bipartite, undirected=undirected: (
            _negative_sampling.edge_index_to_vector,
            edges(),
            (6, 6),
            bipartite,
            undirected,
        ),
    )
    J(
        "vector_to_edge_index",
        lambda bipartite=bipartite, undirected=undirected: (
            _negative_sampling.vector_to_edge_index,
            torch.arange(12),
            (6, 6),
            bipartite,
            undirected,
        ),
    )
for method in ("sparse", "dense"):
    J(f"negative_sampling {method}", lambda method=method: (utils.negative_sampling, edges(), 6, 5, K(method=method)))
for layout in (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc):
    for reduce in ("sum", "mean", "min"):
        J(
            f"spmm {layout} {reduce}",
            lambda layout=layout, reduce=reduce: (
                lambda a, x: utils.spmm(a.to_sparse(layout=layout), x, reduce),
                torch.eye(6),
                nodes(),
            ),
        )
        J(
            f"spmm {layout} {reduce} training",
            lambda layout=layout, reduce=reduce: (
                lambda a, x: utils.spmm(a.to_sparse(layout=layout), x, reduce),
                torch.eye(6),
                nodes().requires_grad_(),
            ),
            True,
        )
J("dense_to_sparse", lambda: (utils.dense_to_sparse, nodes(4, 4), torch.ones(4, dtype=torch.bool)))
for shift in (0.0, 0.1):
    J(
        "blockmodel",
        lambda shift=shift: (
            utils.stochastic_blockmodel_graph,
            torch.tensor([3, 4]),
            torch.tensor([[0.5, 0.1], [0.1 + shift, 0.5]]),
        ),
    )
    J(
        "blockmodel of lists",
        lambda shift=shift: (
            lambda x: utils.stochastic_blockmodel_graph([3, 4], [[0.5, 0.1], [0.1 + shift, 0.5]]),
            nodes(),
        ),
    )
J("embeddings", lambda: (separate, nodes(), edges(), batches()))
J("embeddings of types", lambda: (lambda x: embedding.get_embeddings_hetero(nn.Linear(4, 3).to(x), None, x), nodes()))
J(
    "propagation",
    lambda: (
        lambda x, e, missing: FeaturePropagation(missing, 2)(Data(x=x, edge_index=e)).x,
        nodes(),
        edges(),
        nodes() > 0.5,
    ),
    True,
)
J(
    "propagation of nan",
    lambda: (
        lambda x, e: FeaturePropagation(x.isnan(), 2)(Data(x=x, edge_index=e)).x,
        nodes().masked_fill(torch.eye(6, 4).bool(), torch.nan),
        edges(),
    ),
)
J(
    "split",
    lambda: (
        lambda e: list(
            RandomLinkSplit(num_val=0.2, num_test=0.2, neg_sampling_ratio=9.0)(Data(edge_index=e, num_nodes=3))[
                0
            ].edge_index
        ),
        torch.cartesian_prod(torch.arange(3), torch.arange(3)).T.contiguous(),
    ),
)


class Summing(conv.MessagePassing):
    def forward(self, x, edge_index):
        return self.propagate(edge_index, x=x)


class Shuffled(Summing):
    def forward(self, x, edge_index):
        return super().forward(x, edge_index) + edge_index[0, 0] if isinstance(edge_index, torch.Tensor) else x


for kind in (Summing, Shuffled):
    J(
        f"assert_module {kind.__name__}",
        lambda kind=kind: (lambda x, e: assert_module(kind(), x, e, expected_size=tuple(x.shape)), nodes(), edges()),
    )
J(
    "assert_module of weights",
    lambda: (
        lambda x, e, w: assert_module(
            conv.GCNConv(4, 3).to(x), x, e, edge_weight=w, expected_size=(len(x), 3), test_sparse_layouts=[], atol=1e-6
        ),
        nodes(),
        edges(),
        torch.rand(12),
    ),
)


# Data
def loaded(kind, **changed):
    with tempfile.TemporaryDirectory() as folder:
        kind(folder)
        return len(kind(folder, force_reload=False, **changed))


class Stored(Dataset):
    raw_file_names: list = []
    processed_file_names = ["data.pt"]

    def process(self):
        fs.torch_save(torch.ones(1), self.processed_paths[0])

    def len(self):
        return 1

    def get(self, place):
        return Data(y=torch.tensor([0.5]))


J("stored", lambda: (loaded, Stored))
J("stored with another transform", lambda: (loaded, Stored, K(pre_transform=len)))
J("stored with another filter", lambda: (loaded, Stored, K(pre_filter=len)))
J("classes", lambda: (lambda y: Many([Data(y=one) for one in y.split(1)]).num_classes, torch.tensor([0.5, 1.5, 2.5])))
J(
    "classes of integers",
    lambda: (lambda y: Many([Data(y=one) for one in y.split(1)]).num_classes, torch.tensor([0, 1, 2])),
)
for given in (
    {"edge_index": torch.tensor([[0, 9], [1, 0]])},
    {"edge_index": torch.tensor([[0, -1], [1, 0]])},
    {},
):
    J("validate", lambda given=given: (lambda x: Data(x=x, **given).validate(raise_on_error=False), nodes()))
    J(
        "validate hypergraph",
        lambda given=given: (lambda x: HyperGraphData(x=x, **given).validate(raise_on_error=False), nodes()),
    )


def named_types(x):
    with mock.patch.object(hetero_data, "_DISPLAYED_TYPE_NAME_WARNING", False):
        HeteroData()["a__b"].x = x


J("type names", lambda: (named_types, nodes()))


def interactions(values):
    import pandas

    saved = []
    fake = SimpleNamespace(
        raw_paths=[""], processed_paths=[""], pre_transform=None, save=lambda data, path: saved.extend(data)
    )
    with mock.patch.object(pandas, "read_csv", lambda *a, **k: pandas.DataFrame(values.numpy())):
        JODIEDataset.process(fake)
    return saved[0].src, saved[0].dst


J("JODIE", lambda: (interactions, torch.tensor([[0, 1, 2, 0, 5], [3, 1, 3, 1, 6]])))


def copied():
    with (
        mock.patch.object(fs, "islocal", lambda path: False),
        mock.patch.object(fs, "isdir", lambda path: False),
        mock.patch.object(fs, "glob", lambda path: []),
        tempfile.TemporaryDirectory() as folder,
    ):
        fs.cp("memory://a", str(Path(folder) / "b"), use_cache=False)


def clustered(x, e):
    with mock.patch.object(ClusterData, "_metis", lambda self, e, n: torch.arange(n) % 2):
        return [part.x for part in ClusterData(Data(x=x, edge_index=e), 2)]


J("cp", lambda: (copied,))
J("ClusterData", lambda: (clustered, nodes(), edges()))


def partitioned(data):
    with (
        mock.patch.object(ClusterData, "_metis", lambda self, e, n: torch.arange(n) % 2),
        tempfile.TemporaryDirectory() as folder,
    ):
        Partitioner(data, 2, folder).generate_partition()
        return [torch.load(one, weights_only=False) for one in sorted(Path(folder).rglob("*.pt"))]


J(
    "Partitioner",
    lambda: (lambda x, e, w: partitioned(Data(x=x, edge_index=e, edge_attr=w)), nodes(), edges(), nodes(12)),
)
J("Partitioner of types", lambda: (lambda x, other, e: partitioned(hetero(x, other, e)), nodes(), nodes(), edges()))
J(
    "Partitioner of times",
    lambda: (lambda x, e, t: partitioned(Data(x=x, edge_index=e, edge_time=t)), nodes(), edges(), torch.arange(12)),
)


def questions():
    with tempfile.TemporaryDirectory() as folder:
        fake = SimpleNamespace(
            _get_trips=lambda: [("a", "of", "b"), ("b", "of", "c")],
            indexer_path=str(Path(folder) / "index"),
            model=SimpleNamespace(encode=lambda texts, **options: torch.ones(len(texts), 2)),
        )
        WebQSPDataset._build_graph(fake)
        return fake.indexer.get_edge_features()


J("WebQSP", lambda: (questions,))
J("infer_filter_per_worker", lambda: (infer_filter_per_worker, Data()))
J("shutdown_rpc", lambda: (rpc.shutdown_rpc,))
for order in ("rand", "sample"):
    J(
        f"define_sampler {order}",
        lambda order=order: (lambda y: len(ibmb_loader.define_sampler(order, [y, y + 1], 4)), torch.tensor([0, 1, 1])),
    )
J("order of batches", lambda: (ordered, torch.tensor([0, 1, 1])))


def ordered(y):
    tsp = types.ModuleType("python_tsp.heuristics")
    tsp.solve_tsp_simulated_annealing = lambda distances: (list(range(len(distances))), 0.0)
    with mock.patch.dict(sys.modules, {"python_tsp": types.ModuleType("python_tsp"), "python_tsp.heuristics": tsp}):
        return list(ibmb_loader.define_sampler("order", [y, y + 1], 4))


J("data parallel", lambda: (parallel, nodes()))


def parallel(x):
    return pyg.nn.DataParallel.forward(SimpleNamespace(module=nn.Linear(4, 3).to(x)), [])


J(
    "bidirectional",
    lambda: (
        lambda row, col: (
            HeteroSamplerOutput(
                node={},
                row={("a", "to", "b"): row, ("b", "of", "c"): row},
                col={("a", "to", "b"): col, ("b", "of", "c"): col},
                edge=None,
            )
            .to_bidirectional()
            .row
        ),
        torch.arange(3),
        torch.arange(3).flip(0),
    ),
)
J("NeighborSampler", lambda: (lambda e: NeighborSampler(Data(edge_index=e, num_nodes=6), [2], directed=False), edges()))
J("NeighborSampler, directional", lambda: (lambda e: NeighborSampler(Data(edge_index=e, num_nodes=6), [2]), edges()))


def to_types(x):
    class Plain(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(1))

        def forward(self, x):
            return x * self.weight

    model = pyg.nn.to_hetero(nn.Sequential(Plain()), (["a", "b"], TYPES))
    return model.to(x)({"a": x, "b": x * 2})


J("to_hetero", lambda: (to_types, nodes()))
J("geodesic", lambda: (distances, nodes(4, 3), torch.tensor([[0, 0], [1, 2], [3, 3]])))


def distances(points, faces):
    gdist = types.ModuleType("gdist")
    gdist.compute_gdist = lambda *given: [0.0]
    gdist.local_gdist_matrix = lambda *given: SimpleNamespace(toarray=lambda: [[0.0]])
    with mock.patch.dict(sys.modules, {"gdist": gdist}):
        return utils.geodesic_distance(points, faces, dest=torch.tensor([1]))


def exported(**options):
    def fail(*given, **named):
        raise RuntimeError("onnx_ir.serde.SerdeError: allowzero")

    with mock.patch.object(torch.onnx, "export", fail):
        return _onnx.safe_onnx_export(nn.Identity(), torch.ones(1), "model.onnx", **options)


for skipped in (False, True):
    J("export", lambda skipped=skipped: (exported, K(skip_on_error=skipped, dynamo=True)))


def asked(template):
    tokenizer = SimpleNamespace(chat_template=template)
    fake = SimpleNamespace(tokenizer=tokenizer, sys_prompt="", model_name="", _get_embeds_old=lambda *given: given)
    return LLM._get_embeds(fake, ["?"])


J("prompt", lambda: (asked, ""))


class Searched:
    """The part of an index of faiss that is used."""

    ntotal = 9999

    def search(self, rows, k):
        return torch.zeros(len(rows), k), torch.zeros(len(rows), k).long()


def searched(x, k, excluded=None):
    with mock.patch.dict(sys.modules, {"faiss": types.ModuleType("faiss")}):
        found = pool.L2KNNIndex()
        found.index = Searched()
        return found.search(x, k, excluded)


J("search", lambda: (searched, nodes(), 2))
J("search of many", lambda: (searched, nodes(), 3000))
J("search without links", lambda: (searched, nodes(), 2, edges()))
J("search of many without links", lambda: (searched, nodes(), 2046, torch.zeros(2, 5).long()))


def far(function):
    """With the batch on another device."""
    with (
        mock.patch.object(pyg.typing, "WITH_KNN", True),
        mock.patch.object(pyg.typing, "WITH_RADIUS", True, create=True),
    ):
        return function(nodes(), 2, torch.zeros(6, dtype=torch.long, device="meta"))


for function in (pool.knn_graph, pool.radius_graph):
    J(f"{function.__name__} of two devices", lambda function=function: (far, function))


def early(train, step):
    scores = iter([0.9, 0.5, 0.4, 0.3])
    return train(SimpleNamespace(**{step: lambda *given: (next(scores), 0.0)}), None, None, 4, 0)


class Batches(list):
    dataset = SimpleNamespace(indices=torch.arange(3))


def of_texts(x, y):
    lm = nn.Linear(4, 3).to(x)
    batch = {
        "input": {"input": x},
        "labels": y,
        "is_gold": torch.ones(len(x), dtype=torch.bool),
        "n_id": torch.arange(len(x)),
    }
    fake = SimpleNamespace(
        lm=Answering(lm), device="cpu", lm_loss=None, alpha=0.5, loss=lambda out, y, *given: F.cross_entropy(out, y)
    )
    return GLEM.train_lm(fake, Batches([batch]), torch.optim.SGD(lm.parameters(), 0.1), 1, verbose=False)


class Answering(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, input):
        return SimpleNamespace(logits=self.layer(input))


def of_nodes(x, e, y):
    gnn = conv.GCNConv(4, 3).to(x)
    batch = Data(
        x=x, edge_index=e, y=y, batch_size=len(x), n_id=torch.arange(len(x)), is_gold=torch.ones(len(x)).bool()
    )
    loader = SimpleNamespace(data=batch, input_nodes=torch.arange(len(x)))
    fake = SimpleNamespace(
        gnn=gnn, device="cpu", gnn_loss=None, beta=0.5, loss=lambda out, y, *given: F.cross_entropy(out, y)
    )
    return GLEM.train_gnn(fake, Nodes([batch], loader), torch.optim.SGD(gnn.parameters(), 0.1), 1, verbose=False)


class Nodes(list):
    def __init__(self, batches, of):
        super().__init__(batches)
        self.__dict__.update(of.__dict__)


J("early end of nodes", lambda: (early, GLEM.pre_train_gnn, "train_gnn"))
J("early end of texts", lambda: (early, GLEM.pre_train_lm, "train_lm"))
J("train on texts", lambda: (of_texts, nodes(3), torch.tensor([0, 1, 2])), True)
J("train on nodes", lambda: (of_nodes, nodes(), edges(), torch.randint(0, 3, (6,))), True)


def batches_of_pairs(e):
    fake = SimpleNamespace(alpha=0.1, eps=0.1, output_indices=torch.arange(2).numpy(), num_auxiliary_node_per_output=1)
    with (
        mock.patch.object(ibmb_loader, "topk_ppr_matrix", lambda *given: (torch.eye(6), None)),
        mock.patch.object(ibmb_loader, "get_pairs", lambda matrix: []),
    ):
        ibmb_loader.IBMBNodeLoader.create_loader(fake, Data(edge_index=e, num_nodes=6), None)


J("batches of pairs", lambda: (batches_of_pairs, edges()))


def graphs(**options):
    LightningDataset([Data()], [Data()], [Data()], **options)


def of_graph(kind, task, loader, **options):
    kind(
        Data(x=torch.ones(6, 4), edge_index=torch.zeros(2, 12).long(), num_nodes=6),
        loader=loader,
        **{**task, **options},
    )


def sampled():
    data = graph()
    LightningNodeData(
        data, input_train_nodes=torch.arange(3), graph_sampler=NeighborSampler(data, [2]), replace=True, batch_size=1
    )


J("LightningNodeData of a sampler", lambda: (sampled,))
J("LightningDataset", lambda: (graphs, K(shuffle=True)))
for loader in ("neighbor", "full"):
    for options in (
        {},
        {"batch_size": 2},
        {"num_workers": 2},
        {"shuffle": True},
        {"sampler": [1], "batch_sampler": [[1]]},
    ):
        J(
            "LightningNodeData",
            lambda loader=loader, options=options: (
                of_graph,
                LightningNodeData,
                {"input_train_nodes": torch.arange(3), "num_neighbors": [2]},
                loader,
                K(**options),
            ),
        )
        J(
            "LightningLinkData",
            lambda loader=loader, options=options: (
                of_graph,
                LightningLinkData,
                {"input_train_edges": torch.zeros(2, 3).long(), "num_neighbors": [2]},
                loader,
                K(**options),
            ),
        )
