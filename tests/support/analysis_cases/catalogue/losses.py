"""The loss and the learning rate: nan, divergence, and a learning rate that is too low."""

from __future__ import annotations

from typing import Any

from tests.support.analysis_cases.case import Case, case, each
from tests.support.analysis_cases.configs import ABSENT, AI_TOOLKIT, KOHYA, path_of
from tests.support.analysis_cases.labels import Want, case_of, critical, further_memory, log_error, warning
from tests.support.analysis_cases.machines import RTX_3090, RTX_4090
from tests.support.analysis_cases.simulation import Simulation, falling_loss

_ELSE: list[Want] = [
    {"severity": ["warning"], "path": ["config.process.train.*", "*lr*", "max_grad_norm", "optimizer_*", "no_half_vae"]}
]
_FLAT = lambda progress: 0.36 - 0.008 * progress  # noqa: E731  # a shape among others


def _lower(trainer: str, lr: float) -> list[Want]:
    return [critical(path_of(trainer, "lr"), max=lr / 2)]


def _rising(progress: float) -> float:
    return 0.4 if progress < 0.8 else 0.4 + 8 * (progress - 0.8)


# ---------------------------------------------------------------- nan


@each(ai_toolkit=(AI_TOOLKIT, "4e-3"), kohya=(KOHYA, 0.004))
def nan_after_a_rising_loss(given: tuple[str, Any]) -> Case:
    trainer, lr = given
    run = Simulation(trainer, RTX_4090, {"lr": lr, "dtype": "fp16" if trainer == KOHYA else "bf16"})
    run.load(card=10.0)
    run.train(300, card=17.6, loss=_rising, gradient=lambda progress: 0.4 if progress < 0.8 else 20 * progress)
    _be_nan(run, 300)
    run.finish()
    return case_of(
        run,
        "lr_nan",
        health="Critical",
        first=_lower(trainer, float(lr)),
        may=_ELSE,
        must_not=[critical(path_of(trainer, "dtype"))],
        errors=[log_error("nan", "nan")],
        is_spoilt=True,
        why="Loss and gradients rose before the nan.",
    )


@case
def nan_after_rising_gradients_alone() -> Case:
    run = Simulation(AI_TOOLKIT, RTX_3090, {"lr": "2e-3"})
    run.load(card=10.0)
    run.train(300, card=17.6, gradient=lambda progress: 0.3 if progress < 0.85 else 9.0)
    _be_nan(run, 300)
    run.finish()
    return case_of(
        run,
        "lr_nan_gradients",
        health="Critical",
        first=_lower(AI_TOOLKIT, 2e-3),
        may=_ELSE,
        errors=[log_error("nan", "nan")],
        is_spoilt=True,
        why="Gradients were thirty times their usual height before the nan.",
    )


@each(ai_toolkit=AI_TOOLKIT, kohya=KOHYA)
def nan_out_of_nowhere_in_fp16(trainer: str) -> Case:
    run = Simulation(trainer, RTX_4090, {"dtype": "fp16"})
    run.load(card=10.0)
    run.train(60, card=17.6)
    _be_nan(run, 540)
    run.finish()
    first = [critical(path_of(trainer, "dtype"), **{"in": ["bf16", "no", "fp32", "float32"]})]
    if trainer == KOHYA:
        first.append(critical(path_of(KOHYA, "half_vae"), eq=True))
    return case_of(
        run,
        "nan_fp16",
        health="Critical",
        first=first,
        may=_ELSE,
        must_not=[critical(path_of(trainer, "lr"))],
        errors=[log_error("nan", "nan")],
        is_spoilt=True,
        why="Loss and gradients were ordinary; fp16 overflows.",
    )


@case
def nan_out_of_nowhere_in_bf16() -> Case:
    run = Simulation(AI_TOOLKIT, RTX_4090)
    run.load(card=10.0)
    run.train(300, card=17.6)
    _be_nan(run, 300)
    run.finish()
    return case_of(
        run,
        "nan_bf16",
        health="Critical",
        may=[
            {"severity": ["critical", "warning"], "path": ["config.process.train.*", "environment.*", "machine.host"]}
        ],
        must_not=[critical(path_of(AI_TOOLKIT, "dtype"), **{"in": ["bf16", "fp16"]})],
        errors=[log_error("nan", "nan")],
        is_spoilt=True,
        why="No row of the table holds, but the result is spoilt.",
    )


@case
def nan_stored_as_zero_without_a_line() -> Case:
    run = Simulation(AI_TOOLKIT, RTX_4090, {"dtype": "fp16"})
    run.load(card=10.0)
    run.train(200, card=17.6)
    run.train(400, loss=lambda progress: 0.0, gradient=lambda progress: None)
    run.finish()
    run.log.text = ""
    return case_of(
        run,
        "nan_zero",
        health="Critical",
        first=[critical(path_of(AI_TOOLKIT, "dtype"), **{"in": ["bf16", "fp32", "float32"]})],
        may=_ELSE,
        is_spoilt=True,
        why="The trainer stores 0.0 for nan; the log is empty.",
    )


@case
def nan_in_the_rows_alone() -> Case:
    run = Simulation(KOHYA, RTX_3090, {"dtype": "fp16"})
    run.load(card=10.0)
    run.train(560, card=17.6)
    run.train(40, loss=lambda progress: None, gradient=lambda progress: None)
    run.finish()
    run.log.text = run.log.text.replace("avr_loss=nan", "avr_loss=0.31")
    return case_of(
        run,
        "nan_rows",
        health="Critical",
        first=[
            critical(path_of(KOHYA, "dtype"), **{"in": ["bf16", "no"]}),
            critical(path_of(KOHYA, "half_vae"), eq=True),
        ],
        may=_ELSE,
        is_spoilt=True,
        why="The last four rows have no loss, after real ones.",
    )


@case
def nan_in_the_log_alone() -> Case:
    run = Simulation(KOHYA, RTX_3090, {"dtype": "fp16"})
    run.load(card=10.0)
    run.train(60, card=17.6)
    run.train(540, loss=lambda progress: None)
    run.finish()
    run.rows["StepMetric"].clear()
    return case_of(
        run,
        "nan_log",
        health="Critical",
        first=[
            critical(path_of(KOHYA, "dtype"), **{"in": ["bf16", "no"]}),
            critical(path_of(KOHYA, "half_vae"), eq=True),
        ],
        may=_ELSE,
        errors=[log_error("nan", "nan")],
        is_spoilt=True,
        why="The bar shows avr_loss=nan; there are no rows of steps.",
    )


@each(two_at_the_end=2, none_at_all=60)
def missing_losses_that_are_no_nan(count: int) -> Case:
    run = Simulation(AI_TOOLKIT, RTX_4090)
    run.load(card=10.0)
    run.train(600, card=17.6)
    run.finish()
    for row in run.rows["StepMetric"][-count:]:
        row["loss"] = None
    return case_of(run, "healthy_no_loss", health="Good", why="Not measured is not nan.")


@case
def latents_with_nan_are_a_warning() -> Case:
    run = Simulation(KOHYA, RTX_4090)
    run.log.text += "WARNING  NaN found in latents, replacing with zeros           train_network.py:388\n"
    run.load(card=10.0)
    run.train(600, card=17.6)
    run.finish()
    return case_of(
        run,
        "healthy_latents",
        health="Good",
        noise=["NaN found in latents"],
        why="The trainer replaces them and goes on.",
    )


@case
def nan_with_a_nearly_full_card() -> Case:
    run = Simulation(AI_TOOLKIT, RTX_4090, {"lr": "5e-3", "batch": 2})
    run.load(card=10.0)
    run.train(300, card=22.3, loss=_rising)
    _be_nan(run, 300)
    run.finish()
    return case_of(
        run,
        "lr_nan_high",
        health="Critical",
        first=_lower(AI_TOOLKIT, 5e-3),
        must_include=[[critical(path_of(AI_TOOLKIT, "batch"), eq=1)]],
        may=[*_ELSE, *further_memory(run, "gpu")],
        errors=[log_error("nan", "nan")],
        is_spoilt=True,
        why="What spoilt the result comes before memory above 90 %.",
    )


def _be_nan(run: Simulation, steps: int) -> None:
    """Train on with a loss of nan, as the trainer shows and stores it."""
    if run.trainer == KOHYA:
        run.train(steps, loss=lambda progress: None, gradient=lambda progress: None)
        return
    for _ in range(steps // 10):
        run.log.text += "loss is nan\n"
        run.train(10, loss=lambda progress: 0.0, gradient=lambda progress: None)


# ---------------------------------------------------------------- divergence


@each(ai_toolkit=(AI_TOOLKIT, "1e-3"), kohya=(KOHYA, 0.002))
def loss_diverges(given: tuple[str, Any]) -> Case:
    trainer, lr = given
    run = Simulation(trainer, RTX_4090, {"lr": lr})
    run.load(card=10.0)
    run.train(
        600, card=17.6, loss=lambda progress: 0.4 - 0.2 * progress if progress < 0.5 else 0.3 + 1.4 * (progress - 0.5)
    )
    run.finish()
    return case_of(
        run,
        "diverged",
        health="Critical",
        first=_lower(trainer, float(lr)),
        may=_ELSE,
        is_spoilt=True,
        why="The loss ends at three times its lowest.",
    )


@case
def divergence_with_gaps_in_the_loss() -> Case:
    run = Simulation(KOHYA, RTX_4090, {"lr": 0.001})
    run.load(card=10.0)
    run.train(600, card=17.6, loss=lambda progress: 0.3 if progress < 0.6 else 0.3 + 1.8 * (progress - 0.6))
    run.finish()
    for row in run.rows["StepMetric"][::4]:
        row["loss"] = None
    return case_of(
        run,
        "diverged_gaps",
        health="Critical",
        first=_lower(KOHYA, 0.001),
        may=_ELSE,
        is_spoilt=True,
        why="One loss in four was not measured.",
    )


@each(dip_at_the_end=lambda p: 0.4 if p < 0.88 else 0.15, wobble=lambda p: 0.3 + 0.12 * (int(p * 30) % 2))
def loss_that_does_not_diverge(loss: Any) -> Case:
    run = Simulation(AI_TOOLKIT, RTX_4090)
    run.load(card=10.0)
    run.train(600, card=17.6, loss=loss)
    run.finish()
    return case_of(run, "healthy_loss", health="Good", why="The last window is not twice the lowest.")


# ---------------------------------------------------------------- too low


@each(
    ai_toolkit=(AI_TOOLKIT, {"lr": "5e-6"}),
    default=(AI_TOOLKIT, {"lr": ABSENT}),
    kohya=(KOHYA, {"lr": 2e-6, "optimizer": "AdamW"}),
)
def learning_rate_is_too_low(given: tuple[str, dict[str, Any]]) -> Case:
    trainer, settings = given
    run = Simulation(trainer, RTX_4090, settings)
    run.load(card=10.0)
    run.train(600, card=17.6, loss=_FLAT)
    run.finish()
    return case_of(
        run,
        "lr_low",
        health="Warning",
        first=[warning(path_of(trainer, "lr"), min=2e-5, max=1e-3)],
        may=_ELSE,
        why="The loss of an adapter does not move.",
    )


@case
def learning_rate_is_too_low_without_rows_of_it() -> Case:
    run = Simulation(KOHYA, RTX_4090, {"lr": 5e-6})
    run.load(card=10.0)
    run.train(600, card=17.6, loss=_FLAT, lr=lambda progress: None)
    run.finish()
    return case_of(
        run,
        "lr_low_config",
        health="Warning",
        first=[warning(path_of(KOHYA, "lr"), min=2e-5, max=1e-3)],
        may=_ELSE,
        why="The rows have no learning rate; the config has.",
    )


@each(
    prodigy=(AI_TOOLKIT, {"optimizer": "prodigy", "lr": 1.0}, _FLAT),
    adafactor=(KOHYA, {"optimizer": "Adafactor", "lr": 1e-6}, _FLAT),
    dadapt=(KOHYA, {"optimizer": "DAdaptAdam", "lr": 1e-6}, _FLAT),
    full_fine_tune=(KOHYA, {"network": ABSENT, "network_dim": ABSENT, "lr": 5e-6}, _FLAT),
    learns=(AI_TOOLKIT, {"lr": "8e-6"}, falling_loss),
    ordinary=(AI_TOOLKIT, {}, _FLAT),
)
def learning_rate_that_is_fine(given: tuple[str, dict[str, Any], Any]) -> Case:
    trainer, settings, loss = given
    run = Simulation(trainer, RTX_4090, settings)
    run.load(card=10.0)
    run.train(600, card=17.6, loss=loss)
    run.finish()
    return case_of(run, "healthy_lr", health="Good", why="A flat loss alone proves nothing about the learning rate.")


@case
def learning_rate_that_warms_up() -> Case:
    run = Simulation(KOHYA, RTX_4090, {"lr": 1e-4})
    run.load(card=10.0)
    run.train(600, card=17.6, loss=_FLAT, lr=lambda progress: 1e-4 * progress)
    run.finish()
    return case_of(run, "healthy_warm_up_lr", health="Good", why="It was low only at the beginning.")
