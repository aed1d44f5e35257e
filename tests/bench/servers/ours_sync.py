"""Gudgeon with `def` tools."""

import time

from gudgeon import Server

app = Server("bench")


@app.tool
def echo(text: str) -> str:
    return text


@app.tool
def sleepy(seconds: float) -> str:
    time.sleep(seconds)
    return "awake"


app.run()
