// Questions to the server, and its state as it changes.

/** Asks the server; raises its message where it refuses. */
export async function ask(question, body = {}) {
  let response;
  try {
    response = await fetch(`ask/${question}`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  } catch {
    throw new Error("the console does not answer; is it still running?");
  }
  const answer = await response.json().catch(() => ({ error: `the console answered with status ${response.status}` }));
  if (!response.ok) {
    const error = new Error(answer.error);
    error.hint = answer.hint || "";
    error.answer = answer;
    throw error;
  }
  return answer;
}

/** Calls `each` with every state, and `connected` with whether the server is there. Returns what stops it. */
export function listen(each, connected) {
  const source = new EventSource("changes");
  source.onmessage = (event) => {
    connected(true);
    each(JSON.parse(event.data));
  };
  source.onerror = () => connected(false);
  return () => source.close();
}

/** Only the answer to the latest question counts. */
export function latest() {
  let number = 0;
  return async (promise, then, failed) => {
    const mine = ++number;
    try {
      const answer = await promise;
      if (mine === number) then(answer);
    } catch (error) {
      if (mine === number && failed) failed(error);
    }
  };
}
