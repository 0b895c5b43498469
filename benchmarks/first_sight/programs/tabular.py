"""Tabular data: encoders, models and tensors of nested columns."""

import torch
from torch_frame import NAStrategy, TensorFrame, stype
from torch_frame.data import MultiEmbeddingTensor, MultiNestedTensor
from torch_frame.data.stats import StatType
from torch_frame.nn import conv, decoder, encoding, models
from torch_frame.nn import encoder as encoders
from torch_frame.nn.models.excelformer import feature_mixup
from torch_frame.transforms import CatToNumTransform, MutualInformationSort
from torch_frame.typing import TaskType

DISTRIBUTION = "pytorch-frame"
FOLDER = "torch_frame"

ROWS = 8
COLUMNS = {stype.numerical: ["age", "price"], stype.categorical: ["city", "brand"]}
NUMBERS = {
    StatType.MEAN: 0.0,
    StatType.STD: 1.0,
    StatType.QUANTILES: [-2.0, -1.0, 0.0, 1.0, 2.0],
}
CATEGORIES = {StatType.COUNT: (["a", "b", "c"], [4, 3, 1])}
STATS = {"age": NUMBERS, "price": NUMBERS, "city": CATEGORIES, "brand": CATEGORIES}


def frame(*, missing=False, columns=COLUMNS):
    numbers, categories = torch.randn(ROWS, 2), torch.randint(0, 3, (ROWS, 2))
    if missing:
        numbers[0, 0], categories[1, 1] = torch.nan, -1
    features = {stype.numerical: numbers, stype.categorical: categories}
    return TensorFrame({kind: features[kind] for kind in columns}, columns, torch.randint(0, 2, (ROWS,)))


def model(make, *, columns=COLUMNS, **options):
    def build():
        stats = {name: STATS[name] for names in columns.values() for name in names}
        return make(out_channels=2, col_stats=stats, col_names_dict=columns, **options), (frame(columns=columns),)

    return build


ONLY_NUMBERS = {stype.numerical: ["age", "price"]}
ONLY_CATEGORIES = {stype.categorical: ["city", "brand"]}


def encoder(make, kind, feature, stats, **options):
    def build():
        made = make(out_channels=4, stats_list=stats, stype=kind, **options)
        made.reset_parameters()
        return made, (feature(),)

    return build


def numbers(make, **options):
    return encoder(make, stype.numerical, lambda: torch.randn(ROWS, 2), [NUMBERS, NUMBERS], **options)


def missing():
    values = torch.randn(ROWS, 2)
    values[0, 0] = torch.nan
    return values


def filled(strategy):
    return encoder(encoders.LinearEncoder, stype.numerical, missing, [NUMBERS, NUMBERS], na_strategy=strategy)


def nested():
    return MultiNestedTensor.from_tensor_mat(
        [[torch.randint(0, 3, (i % 3 + 1,)) for _ in range(2)] for i in range(ROWS)]
    )


def embedded():
    return MultiEmbeddingTensor.from_tensor_list([torch.randn(ROWS, 3), torch.randn(ROWS, 2)])


SEVERAL = {StatType.MULTI_COUNT: (["a", "b", "c"], [4, 3, 1])}
TIMES = {
    StatType.YEAR_RANGE: [2000, 2024],
    StatType.NEWEST_TIME: torch.tensor([2024, 1, 1, 1, 1, 1, 1]),
    StatType.OLDEST_TIME: torch.tensor([2000, 1, 1, 1, 1, 1, 1]),
    StatType.MEDIAN_TIME: torch.tensor([2010, 1, 1, 1, 1, 1, 1]),
}


def times():
    return torch.stack([torch.randint(2000, 2024, (ROWS, 1)), *(torch.randint(0, 7, (ROWS, 1)) for _ in range(6))], -1)


def on(make, called):
    return lambda: (called, (make(),))


def transform(make, *arguments):
    def build():
        made = make(*arguments)
        columns = ONLY_CATEGORIES if make is CatToNumTransform else ONLY_NUMBERS
        data = frame(columns=columns)
        made.fit(data, {name: STATS[name] for names in columns.values() for name in names})
        return made, (data,)

    return build


X = torch.randn(ROWS, 2, 8)

CALLS = {
    "MLP": model(models.MLP, channels=8, num_layers=2),
    "ResNet": model(models.ResNet, channels=8, num_layers=2),
    "ResNet, batch norm": model(models.ResNet, channels=8, num_layers=2, normalization="batch_norm"),
    "FT-transformer": model(models.FTTransformer, channels=8, num_layers=1),
    "tab transformer": model(
        models.TabTransformer,
        channels=8,
        num_layers=1,
        num_heads=2,
        encoder_pad_size=2,
        attn_dropout=0.1,
        ffn_dropout=0.1,
    ),
    "TabNet": model(
        models.TabNet, num_layers=2, split_feat_channels=4, split_attn_channels=4, gamma=1.2, columns=ONLY_NUMBERS
    ),
    "Trompt": model(models.Trompt, channels=8, num_prompts=4, num_layers=1),
    "ExcelFormer": model(
        models.ExcelFormer, in_channels=8, num_cols=2, num_layers=1, num_heads=2, columns=ONLY_NUMBERS
    ),
    "linear encoder": numbers(encoders.LinearEncoder),
    "stack encoder": numbers(encoders.StackEncoder),
    "bucket encoder": numbers(encoders.LinearBucketEncoder),
    "periodic encoder": numbers(encoders.LinearPeriodicEncoder),
    "ExcelFormer encoder": numbers(encoders.ExcelFormerEncoder),
    "mean for missing": filled(NAStrategy.MEAN),
    "zero for missing": filled(NAStrategy.ZEROS),
    "embedding encoder": encoder(
        encoders.EmbeddingEncoder, stype.categorical, lambda: torch.randint(0, 3, (ROWS, 2)), [CATEGORIES, CATEGORIES]
    ),
    "multi-categorical encoder": encoder(
        encoders.MultiCategoricalEmbeddingEncoder, stype.multicategorical, nested, [SEVERAL, SEVERAL]
    ),
    "linear embedding encoder": encoder(
        encoders.LinearEmbeddingEncoder, stype.embedding, embedded, [{StatType.EMB_DIM: 3}, {StatType.EMB_DIM: 2}]
    ),
    "timestamp encoder": encoder(encoders.TimestampEncoder, stype.timestamp, times, [TIMES]),
    "cyclic encoding": lambda: (encoding.CyclicEncoding(8), (torch.rand(ROWS),)),
    "positional encoding": lambda: (encoding.PositionalEncoding(8), (torch.arange(ROWS).float(),)),
    "ExcelFormer convolution": lambda: (conv.ExcelFormerConv(8, 2, 2), (X,)),
    "FT-transformer convolutions": lambda: (conv.FTTransformerConvs(8), (X,)),
    "tab transformer convolution": lambda: (conv.TabTransformerConv(8, 2), (X,)),
    "Trompt convolution": lambda: (conv.TromptConv(8, 2, 4), (X, torch.randn(ROWS, 4, 8))),
    "ExcelFormer decoder": lambda: (decoder.ExcelFormerDecoder(8, 2, 2), (X,)),
    "Trompt decoder": lambda: (decoder.TromptDecoder(8, 2, 4), (torch.randn(ROWS, 4, 8),)),
    **{
        f"mixup {kind}": lambda kind=kind: (
            lambda x, y: feature_mixup(x, y, 2, mixup_type=kind, mi_scores=torch.rand(2)),
            (X, torch.randint(0, 2, (ROWS,))),
        )
        for kind in (None, "feature", "hidden")
    },
    "rows": on(frame, lambda data: data[torch.tensor([0, 2])].feat_dict[stype.numerical].sum()),
    "column": on(frame, lambda data: data.get_col_feat("age").sum()),
    "equality": on(frame, lambda data: data == data),
    "text": on(frame, lambda data: (str(data), data.feat_dict[stype.numerical].sum())),
    "nested, rows": on(nested, lambda data: data[torch.tensor([0, 2])].values),
    "nested, mask": on(nested, lambda data: data[torch.arange(ROWS) > 3].values),
    "nested, slice": on(nested, lambda data: data[2:5].values),
    "nested, element": on(nested, lambda data: data[1, 0] + 1),
    "nested, columns": on(nested, lambda data: data[:, [0]].values),
    "nested, dense": on(nested, lambda data: data.to_dense(fill_value=-1)),
    "nested, joined": on(nested, lambda data: MultiNestedTensor.cat([data, data], dim=0).values),
    "nested, side by side": on(nested, lambda data: MultiNestedTensor.cat([data, data], dim=1).values),
    "embedded, rows": on(embedded, lambda data: data[torch.tensor([0, 2])].values),
    "embedded, column": on(embedded, lambda data: data[:, 0].values),
    "embedded, range": on(embedded, lambda data: data.narrow(0, 1, 3).values),
    "embedded, joined": on(embedded, lambda data: MultiEmbeddingTensor.cat([data, data], dim=1).values),
    "categories to numbers": transform(CatToNumTransform),
    "sort by information": transform(MutualInformationSort, TaskType.BINARY_CLASSIFICATION),
}
