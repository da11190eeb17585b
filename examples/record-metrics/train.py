"""Records every step of a training loop, in a job or in a notebook. Usage: train.py [STEPS]"""

import random
import sys

from trackside import Run

RATE = 0.05


def main(steps: int = 200) -> None:
    random.seed(1)
    weight = 0.0
    with Run(config={"learning_rate": RATE}, total_steps=steps) as run:
        for step in range(1, steps + 1):
            error = weight - 3.0
            weight -= RATE * error
            loss = error * error + random.uniform(0.2, 0.3)  # your training step
            run.step(step, loss=loss, lr=RATE, weight=weight)  # any other number keeps its name
            if step % 50 == 0:
                run.event("save_start")
                print(f"step {step}/{steps} loss: {loss:.4f}", flush=True)
                run.event("save_end")
                run.values(step, val_loss=(weight - 3.0) ** 2 + 0.25)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
