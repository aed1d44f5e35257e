"""Gudgeon with an `async def` tool."""

from gudgeon import Server

app = Server("bench")


@app.tool
async def echo(text: str) -> str:
    return text


app.run()
