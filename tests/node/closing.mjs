// A client that is closed when a test is done with it.
export async function closing(connecting, use) {
  const client = await connecting;
  try {
    return await use(client);
  } finally {
    await client.close();
  }
}
