"""Calls of transformers that reach what ``fix --unsafe`` edits: models with random weights, as small as they can be.

Needs huggingface-hub, regex, safetensors and tokenizers.
"""

# mypy: ignore-errors

import inspect
from types import SimpleNamespace

import torch
from common import J, K
from transformers import (
    CONFIG_MAPPING,
    AutoModel,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedConfig,
    T5Config,
    T5ForConditionalGeneration,
)
from transformers.generation import logits_process, stopping_criteria, watermarking
from transformers.generation import utils as generation_utils
from transformers.loss import loss_d_fine, loss_for_object_detection
from transformers.models.fastspeech2_conformer import modeling_fastspeech2_conformer as fastspeech
from transformers.models.led import modeling_led as led
from transformers.models.vits import modeling_vits as vits
from transformers.models.xlm import modeling_xlm as xlm

VOCABULARY = 99
WIDTHS = (
    "d_ff d_model decoder_ffn_dim dim dim_feedforward embed_dim embedding_size encoder_ffn_dim feed_forward_size "
    "ffn_dim hidden_dim hidden_size intermediate_size mlp_dim model_dim moe_intermediate_size n_embd n_inner "
    "projection_dim"
).split()
PAIRS = (
    "decoder_attention_heads decoder_layers depth encoder_attention_heads encoder_layers n_head n_heads n_layer "
    "n_layers num_attention_heads num_decoder_layers num_encoder_layers num_experts_per_tok num_heads "
    "num_hidden_layers num_key_value_heads num_layers"
).split()
SIZES = {
    **dict.fromkeys(WIDTHS, 16),
    **dict.fromkeys(PAIRS, 2),
    **dict.fromkeys(("d_kv", "head_dim", "patch_size"), 8),
    **dict.fromkeys(("max_position_embeddings", "n_positions"), 64),
    **dict.fromkeys(("n_routed_experts", "num_experts", "num_local_experts"), 4),
    "image_size": 32,
    "num_channels": 3,
    "vocab_size": VOCABULARY,
}
TOKENS = ("bos_token_id", "decoder_start_token_id", "eos_token_id", "pad_token_id")


def small(config):
    """The configuration, in which all sizes are small."""
    for name, value in SIZES.items():
        if type(getattr(config, name, None)) is int:
            setattr(config, name, value)
    for name in TOKENS:
        if isinstance(getattr(config, name, None), int) and getattr(config, name) >= VOCABULARY:
            setattr(config, name, 1)
    for one in vars(config).values():
        if isinstance(one, PreTrainedConfig):
            small(one)
    return config


def ids(length=7):
    return torch.randint(5, VOCABULARY, (2, length))


def inputs(model):
    """What the model takes: tokens, images or sound."""
    names = inspect.signature(model.forward).parameters
    config = getattr(model.config, "vision_config", model.config)
    given = {}
    if "input_ids" in names and model.main_input_name != "pixel_values":
        given["input_ids"] = ids()
        if "attention_mask" in names:
            given["attention_mask"] = torch.tensor([[1] * 7, [1] * 5 + [0] * 2])
    if "pixel_values" in names:
        size = getattr(config, "image_size", 32)
        size = size if isinstance(size, int) else 32
        given["pixel_values"] = torch.rand(2, getattr(config, "num_channels", 3), size, size)
    if "decoder_input_ids" in names:
        given["decoder_input_ids"] = ids(5)
    if model.main_input_name == "input_values":
        given = {"input_values": torch.rand(2, 2000)}
    if model.main_input_name == "input_features":
        given = {"input_features": torch.rand(2, 80, 100)}
    return given


def of(kind, training=False, **options):
    model = AutoModel.from_config(small(CONFIG_MAPPING[kind](**options))).train(training)
    return model, K(inputs(model))


KINDS = (
    "afmoe aimv2 aimv2_vision_model albert altclip apertus arcee aria_text audioflamingo3 bart beam beit bert bert- "
    "generation big_bird bigbird_pegasus biogpt bitnet blenderbot blenderbot-small bloom camembert chinese_clip "
    "chinese_clip_vision_model clip clip_text_model clip_vision_model clipseg cohere cohere2 cohere2_moe convbert "
    "cosmos3_edge_text cwm data2vec-text data2vec-vision deberta deberta-v2 deit diffllama dinov2 "
    "dinov2_with_registers dinov3_vit distilbert doge dpr dpt electra ernie ernie4_5 ernie4_5_moe esmc eurobert "
    "exaone4 exaone_moe falcon_mamba flaubert flava flex_olmo flint fnet gemma gemma2 gemma3_text git glm glm4 "
    "glm4_moe glmasr gpt-sw3 gpt2 gpt_bigcode gpt_neo gpt_neox gpt_neox_japanese gpt_oss gradium_phonon_tts granite "
    "granite_docling_text granite_swa granitemoe granitemoe_swa granitemoeshared gte helium hy_v3 hyperclovax ibert "
    "idefics3_vision ijepa imagegpt internlm3 internvl_vision iquestcoder jais2 jetmoe jina_embeddings_v3 kolibri1 "
    "laguna lfm2 llama llama4_text longformer longt5 m2m_100 mamba marian mbart megatron-bert mellum metaclip_2 "
    "minimax minimax_m2 ministral3 mistral mixtral mlcd mlcd_vision_model modernbert modernbert-decoder molmo2_text "
    "moshi moss_transcribe_diarize mpnet mpt mra mt5 muse_glimmer_text musicflamingo mvp nanochat nllb-moe nomic_bert "
    "nystromformer olmo olmo2 olmo3 olmoe openai-gpt openai_privacy_filter owlv2 owlvit pegasus pegasus_x persimmon "
    "phi phi3 phimoe pixio pixtral plbart pocket_tts prophetnet qianfan_ocr_vision qwen2 qwen2_audio qwen3 qwen3_moe "
    "qwen3_vl_moe_text qwen3_vl_text rembert roberta roberta-prelayernorm roformer sam3_lite_text_text_model "
    "sam3_vit_model seed_oss siglip_vision_model smollm3 smolvlm_vision solar_open splinter squeezebert stablelm "
    "starcoder2 switch_transformers t5 tapas tipsv2 tipsv2_text_model tipsv2_vision_model ultrabert umt5 vaultgemma "
).split()
for kind in KINDS:
    J(kind, lambda kind=kind: of(kind))
    J(f"{kind} training", lambda kind=kind: of(kind, True), True)


def experts(kind):
    """The first experts of a model, and rows for them."""
    model = AutoModel.from_config(small(CONFIG_MAPPING[kind]()), experts_implementation="eager")
    layer = next(one for one in model.modules() if type(one).__name__.endswith("Experts"))
    return layer, torch.randn(6, 16), torch.randint(0, 4, (6, 2)), torch.rand(6, 2)


for kind in (
    "gpt_oss",
    "mixtral",
    "olmoe",
    "phimoe",
    "qwen2_moe",
    "qwen3_moe",
    "minimax",
    "flex_olmo",
    "granitemoe",
    "hy_v3",
):
    J(f"experts of {kind}", lambda kind=kind: experts(kind), True)


# Losses
def boxes(count=3):
    low = torch.rand(count, 2)
    return torch.cat([low, low + torch.rand(count, 2)], 1)


J("box_iou", lambda: (loss_for_object_detection.generalized_box_iou, boxes(), boxes()))
J("box_iou of other corners", lambda: (loss_for_object_detection.generalized_box_iou, boxes().flip(1), boxes()))
J("box_iou to other corners", lambda: (loss_for_object_detection.generalized_box_iou, boxes(), boxes().flip(1)))
J("translate_gt", lambda: (loss_d_fine.translate_gt, torch.rand(6) * 4, 4, torch.tensor([0.5]), torch.tensor([4.0])))


def fine_grained(corners, teacher, logits, points, teacher_logits, some):
    indices = [
        (
            torch.tensor([0, 1]) if some else torch.zeros(0).long(),
            torch.tensor([0, 1]) if some else torch.zeros(0).long(),
        )
    ]
    config = SimpleNamespace(
        num_labels=2,
        weight_loss_vfl=1.0,
        weight_loss_bbox=1.0,
        weight_loss_giou=1.0,
        weight_loss_fgl=1.0,
        weight_loss_ddf=1.0,
        matcher_class_cost=1.0,
        matcher_bbox_cost=1.0,
        matcher_giou_cost=1.0,
        use_focal_loss=True,
        matcher_alpha=0.25,
        matcher_gamma=2.0,
        focal_loss_alpha=0.75,
        focal_loss_gamma=2.0,
        eos_coefficient=0.1,
        max_num_bins=4,
        reg_scale=4.0,
        up=0.5,
    )
    loss = loss_d_fine.DFineLoss(config)
    outputs = {
        "pred_corners": corners,
        "ref_points": points,
        "teacher_corners": teacher,
        "logits": logits,
        "teacher_logits": teacher_logits,
        "pred_boxes": points,
        "reg_scale": torch.tensor([4.0]),
        "up": torch.tensor([0.5]),
    }
    targets = [{"boxes": points[0, :2].detach(), "class_labels": torch.tensor([0, 1])}]
    return loss.loss_local(outputs, targets, indices, 2.0, T=5)


for some in (True, False):
    J(
        "loss_local",
        lambda some=some: (
            fine_grained,
            torch.randn(1, 3, 20),
            torch.randn(1, 3, 20),
            torch.randn(1, 3, 2),
            torch.rand(1, 3, 4) / 2,
            torch.randn(1, 3, 2),
            some,
        ),
        True,
    )


# Parts of models
J(
    "spline",
    lambda: (
        vits._unconstrained_rational_quadratic_spline,
        torch.randn(1, 2, 4) * 4,
        torch.randn(1, 2, 4, 3),
        torch.randn(1, 2, 4, 3),
        torch.randn(1, 2, 4, 2),
    ),
    True,
)
J(
    "spline backwards",
    lambda: (
        vits._unconstrained_rational_quadratic_spline,
        torch.randn(1, 2, 4) * 9,
        torch.randn(1, 2, 4, 3),
        torch.randn(1, 2, 4, 3),
        torch.randn(1, 2, 4, 2),
        True,
    ),
    True,
)
J("length_regulator", lambda: (fastspeech.length_regulator, torch.rand(2, 3, 4), torch.tensor([[1, 2, 0], [1, 1, 1]])))
J("length_regulator of zeros", lambda: (fastspeech.length_regulator, torch.rand(2, 3, 4), torch.zeros(2, 3).long()))


def speech_loss(masking, weighted):
    loss = fastspeech.FastSpeech2ConformerLoss(SimpleNamespace(use_masking=masking, use_weighted_masking=weighted))
    durations = torch.tensor([[1, 2, 0], [1, 1, 1]])
    return (
        loss,
        torch.rand(2, 5, 4),
        torch.rand(2, 5, 4),
        torch.rand(2, 3),
        torch.rand(2, 3, 1),
        torch.rand(2, 3, 1),
        torch.rand(2, 5, 4),
        durations,
        torch.rand(2, 3, 1),
        torch.rand(2, 3, 1),
        torch.tensor([[1, 1, 0], [1, 1, 1]]).bool(),
        torch.ones(2, 5, 4, dtype=torch.bool),
    )


for masking, weighted in ((True, False), (False, True), (False, False)):
    J("speech loss", lambda masking=masking, weighted=weighted: speech_loss(masking, weighted), True)
J("get_masks", lambda: (xlm.get_masks, 5, torch.tensor([3, 5]), False))
J("get_masks, causal", lambda: (xlm.get_masks, 5, torch.tensor([3, 6]), True))
J(
    "led layer",
    lambda: (
        led.LEDEncoderLayer(small(CONFIG_MAPPING["led"](attention_window=[4, 4])), 0).half().eval(),
        torch.rand(1, 8, 16).half() * 1e4,
        torch.zeros(1, 8).half(),
        torch.zeros(1, 8).bool(),
        torch.zeros(1, 8).bool(),
        False,
    ),
)

# Generation
TOKENIZED = torch.tensor([[5, 6, 7, 8], [9, 10, 11, 12]])


def language_model(**options):
    torch.manual_seed(0)
    return GPT2LMHeadModel(small(GPT2Config(**options))).eval()


def generated(tokens, **options):
    return language_model().generate(tokens, **{"max_new_tokens": 3, "do_sample": False, "pad_token_id": 1, **options})


def translated(tokens, **options):
    torch.manual_seed(0)
    model = T5ForConditionalGeneration(small(T5Config(decoder_start_token_id=0))).eval()
    return model.generate(tokens, max_new_tokens=3, **options)


for options in (
    {},
    {"do_sample": True, "temperature": 0.7, "top_k": 5, "top_p": 0.9},
    {"num_beams": 2},
    {"num_beams": 2, "do_sample": True},
    {"min_length": 2},
    {"min_new_tokens": 2, "max_length": 9},
    {"max_length": 3, "max_new_tokens": None},
    {"pad_token_id": None},
    {"repetition_penalty": 1.2, "no_repeat_ngram_size": 2},
    {"bad_words_ids": [[7]]},
    {"use_cache": False},
    {"max_time": 1e9},
    {"guidance_scale": 1.5},
    {"prompt_lookup_num_tokens": 2},
    {"cache_implementation": "static"},
    {"stop_strings": ["a"]},
    {"eos_token_id": 5, "exponential_decay_length_penalty": (1, 1.5)},
    {"sequence_bias": [[[7], 1.0]]},
    {"min_p": 0.1, "do_sample": True},
    {"typical_p": 0.9, "do_sample": True},
    {"epsilon_cutoff": 0.1, "do_sample": True},
    {"eta_cutoff": 0.1, "do_sample": True},
    {"output_scores": True, "return_dict_in_generate": True},
    {"num_return_sequences": 2, "do_sample": True},
    {"no_such": 1},
    {"eos_token_id": -1, "min_length": 9},
    {"forced_eos_token_id": 5},
    {"remove_invalid_values": True},
    {"renormalize_logits": True},
):
    J(f"generate {options}", lambda options=options: (generated, TOKENIZED.clone(), K(**options)))
    J(f"translate {options}", lambda options=options: (translated, TOKENIZED.clone(), K(**options)))
J(
    "generate after padding",
    lambda: (
        generated,
        torch.tensor([[5, 6, 7, 1], [5, 6, 7, 8]]),
        K(attention_mask=torch.tensor([[1, 1, 1, 0], [1, 1, 1, 1]])),
    ),
)
J("generate after padding of no mask", lambda: (generated, torch.tensor([[5, 6, 7, 1], [5, 6, 7, 8]])))
J(
    "generate from a mask of another shape",
    lambda: (generated, TOKENIZED.clone(), K(attention_mask=torch.ones(2, 3).long())),
)


def assisted(tokens, **options):
    return language_model().generate(
        tokens[:1], assistant_model=language_model(n_layer=1), max_new_tokens=4, pad_token_id=1, **options
    )


for options in ({}, {"do_sample": True}):
    J("assisted", lambda options=options: (assisted, TOKENIZED.clone(), K(**options)))
J(
    "speculative sampling",
    lambda: (
        generation_utils._speculative_sampling,
        torch.randint(0, 9, (1, 7)),
        torch.rand(1, 3, 9),
        3,
        torch.rand(1, 4, 9),
        False,
    ),
)
J(
    "speculative sampling of the last",
    lambda: (
        generation_utils._speculative_sampling,
        torch.randint(0, 9, (1, 7)),
        torch.rand(1, 3, 9),
        3,
        torch.rand(1, 4, 9),
        True,
    ),
)
for eos in ([5], [-1], torch.tensor([5.0])):
    for make in (
        lambda eos: logits_process.MinLengthLogitsProcessor(9, eos, device="cpu"),
        lambda eos: logits_process.MinNewTokensLengthLogitsProcessor(2, 4, eos, device="cpu"),
        lambda eos: logits_process.ForcedEOSTokenLogitsProcessor(5, eos, device="cpu"),
        lambda eos: logits_process.ExponentialDecayLengthPenalty((1, 1.5), eos, 4),
    ):
        J(
            "logits of an end",
            lambda eos=eos, make=make: (
                lambda tokens, scores: make(eos)(tokens, scores),
                TOKENIZED.clone(),
                torch.rand(2, VOCABULARY),
            ),
        )
J(
    "barked end",
    lambda: (
        lambda tokens, scores, eos: logits_process.BarkEosPrioritizerLogitsProcessor(eos, 0.2, device="cpu")(
            tokens, scores
        ),
        TOKENIZED.clone(),
        torch.rand(2, VOCABULARY),
        torch.tensor([5]),
    ),
)
J(
    "barked end below zero",
    lambda: (
        lambda tokens, scores, eos: logits_process.BarkEosPrioritizerLogitsProcessor(eos, 0.2, device="cpu")(
            tokens, scores
        ),
        TOKENIZED.clone(),
        torch.rand(2, VOCABULARY),
        torch.tensor([-5]),
    ),
)
for most in (2, 9):
    J("length", lambda most=most: (stopping_criteria.MaxLengthCriteria(most, 3), TOKENIZED.clone(), torch.rand(2, 9)))


def watermarked(tokens):
    detector = watermarking.WatermarkDetector.__new__(watermarking.WatermarkDetector)
    detector.bos_token_id, detector.processor = 5, SimpleNamespace(context_width=1, seeding_scheme="lefthash")
    detector.greenlist_ratio, detector.ignore_repeated_ngrams = 0.25, True
    detector._score_ngrams_in_passage = lambda ids: (torch.ones(len(ids)).numpy(), torch.ones(len(ids)).numpy())
    return detector(tokens)


for tokens in ([[5, 6, 7], [5, 7, 8]], [[5, 6, 7], [6, 7, 8]], [[4, 6, 7], [6, 7, 8]]):
    J("watermark", lambda tokens=tokens: (watermarked, torch.tensor(tokens)))
