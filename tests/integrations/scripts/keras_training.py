"""A tiny training with Keras; prints the loss of each batch, and of each epoch, as one JSON object."""

import json
import os
import signal
import sys
import time

ASKED = {
    "backend": "torch",
    "epochs": 3,
    "accumulate": None,
    "together": 1,
    "resume": None,
    "kill_at": None,
    "fail_at": None,
    "schedule": False,
}
ASKED.update(json.loads(sys.argv[1]))
os.environ["KERAS_BACKEND"] = ASKED["backend"]

import keras  # noqa: E402
import numpy  # noqa: E402

from trackside.integrations.keras import TracksideCallback  # noqa: E402


class Watch(keras.callbacks.Callback):
    """Kills the program, or lets it fail, at a batch; counted over all epochs, from 1."""

    async_safe = not (ASKED["kill_at"] or ASKED["fail_at"])

    def __init__(self):
        super().__init__()
        self.batches = 0
        self.means = []

    def on_train_batch_end(self, batch, logs=None):
        time.sleep(0.005)
        self.batches += 1
        self.means.append((batch, logs["loss"]))
        if self.batches == ASKED["kill_at"]:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.batches == ASKED["fail_at"]:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB.")


def new_model():
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1, kernel_initializer="ones")])
    rate = keras.optimizers.schedules.InverseTimeDecay(0.1, 1, 1.0) if ASKED["schedule"] else 0.1
    optimizer = keras.optimizers.SGD(rate, gradient_accumulation_steps=ASKED["accumulate"])
    model.compile(optimizer=optimizer, loss="mse", metrics=["mae"], steps_per_execution=ASKED["together"])
    return model


def main():
    keras.utils.set_random_seed(1)
    x, y = numpy.random.rand(16, 3), numpy.random.rand(16, 1)
    model = keras.saving.load_model(ASKED["resume"]) if ASKED["resume"] else new_model()
    watch, started = Watch(), time.time()
    history = model.fit(
        x,
        y,
        batch_size=2,
        epochs=ASKED["epochs"],
        shuffle=False,
        verbose=0,
        validation_data=(x, y),
        callbacks=[TracksideCallback(), watch],
    )
    seconds = time.time() - started
    model.save("model.keras")
    print(json.dumps({"history": history.history, "means": watch.means, "seconds": seconds}))


main()
