"use strict";
(() => {
  const root = document.getElementById("graphiql");
  const fetcher = GraphiQL.createFetcher({ url: root.dataset.endpoint });
  const defaultQuery = `# The API key goes into the Headers tab below:
#   {"Authorization": "Bearer <key>"}
# \`ecphoria keys create\` makes one.
# Then fetch the schema with ↻ on the left:
# Ctrl-Space completes, Ctrl-Enter runs.

query Recall($question: String!, $userId: ID!) {
  recall(input: {question: $question, userId: $userId}) {
    action
    advisory
    confidence { overall }
    memories {
      relevance
      memory { id text kind validUntil }
      because { path }
    }
    entities { __typename id name }
    relations { type from { id } to { id } }
    contextBlock(maxTokens: 800)
  }
}
`;

  // GraphiQL keeps headers in its history whatever `shouldPersistHeaders` says, but a key has no
  // business in the browser's storage.
  const withoutHeaders = (value) => {
    try {
      return JSON.stringify(JSON.parse(value), (name, item) => (name === "headers" ? null : item));
    } catch {
      return value;
    }
  };
  const storage = {
    get length() {
      return localStorage.length;
    },
    getItem: (name) => localStorage.getItem(name),
    setItem: (name, value) => {
      const kept = withoutHeaders(value);
      if (!name.endsWith(":headers") && !kept.includes("Bearer ecph_")) {
        localStorage.setItem(name, kept);
      }
    },
    removeItem: (name) => localStorage.removeItem(name),
    clear: () => localStorage.clear(),
  };

  ReactDOM.createRoot(root).render(
    React.createElement(GraphiQL, {
      fetcher,
      storage,
      defaultQuery,
      variables: '{\n  "question": "",\n  "userId": ""\n}',
      defaultHeaders: '{\n  "Authorization": "Bearer "\n}',
      defaultEditorToolsVisibility: "headers",
      isHeadersEditorEnabled: true,
      shouldPersistHeaders: false,
    }),
  );
})();
