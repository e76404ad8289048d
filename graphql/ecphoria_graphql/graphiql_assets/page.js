"use strict";
(() => {
  const root = document.getElementById("graphiql");
  const fetcher = GraphiQL.createFetcher({ url: root.dataset.endpoint });
  const defaultQuery = `# The API key goes into the Headers tab below:
#   {"Authorization": "Bearer <key>"}
# \`ecphoria keys create\` makes one.
# Then fetch the schema with ↻ on the left:
# Ctrl-Space completes, Ctrl-Enter runs.
# The list on the left has an example of every operation.

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

  // --- examples ---------------------------------------------------------------------------

  // What must be given, with nothing in it: the editor says what the schema asks for.
  const EMPTY = { Int: 1, Float: 0.5, Boolean: false };
  const variablesOf = (body) => {
    const declared = /(?:query|mutation|subscription)\s+\w+\s*\(([^)]*)\)/.exec(body);
    const found = {};
    for (const [, name, type] of (declared ? declared[1] : "").matchAll(
      /\$(\w+)\s*:\s*([[\]\w!]+)(?!\s*=)/g,
    )) {
      if (!type.endsWith("!")) {
        continue;
      }
      const plain = type.replace(/[[\]!]/g, "");
      const value = plain.endsWith("Input") ? {} : (EMPTY[plain] ?? "");
      found[name] = type.startsWith("[") ? [value] : value;
    }
    return JSON.stringify(found, null, 2);
  };
  const titleOf = (body) => {
    const said = [];
    for (const line of body.split("\n")) {
      if (!line.startsWith("#")) {
        break;
      }
      said.push(line.slice(1).trim());
    }
    return said.join(" ");
  };
  const loadExamples = async () => {
    const answer = await fetch(`${root.dataset.assets}/examples.json`);
    if (!answer.ok) {
      throw new Error(`the examples cannot be loaded: HTTP ${answer.status}`);
    }
    const kinds = { query: 0, mutation: 1, subscription: 2 };
    return (await answer.json()).operations.sort(
      (one, other) => kinds[one.type] - kinds[other.type] || one.name.localeCompare(other.name),
    );
  };

  const h = React.createElement;
  const Icon = () =>
    h(
      "svg",
      { height: "1em", viewBox: "0 0 24 24", fill: "none", stroke: "currentColor", strokeWidth: 2 },
      h("path", { d: "M9 6h11M9 12h11M9 18h11M4 6h.01M4 12h.01M4 18h.01", strokeLinecap: "round" }),
    );
  const Examples = ({ choose }) => {
    const [examples, setExamples] = React.useState([]);
    const [fault, setFault] = React.useState(null);
    React.useEffect(() => {
      loadExamples().then(setExamples, (error) => setFault(error.message));
    }, []);
    const items = examples.map((example) =>
      h(
        "li",
        { key: example.id },
        h(
          "button",
          { type: "button", onClick: () => choose(example) },
          h("strong", null, example.name),
          h("em", null, example.type),
          h("span", null, titleOf(example.body)),
        ),
      ),
    );
    return h(
      "section",
      { "aria-label": "Examples", className: "examples" },
      h("h2", null, "Examples"),
      h("p", null, fault ?? "One of every operation. It takes the place of what is in the editor."),
      h("ul", null, items),
    );
  };

  const Page = () => {
    const [shown, setShown] = React.useState({ variables: '{\n  "question": "",\n  "userId": ""\n}' });
    const plugins = React.useMemo(() => {
      const choose = ({ body }) => setShown({ query: body, variables: variablesOf(body) });
      return [{ title: "Examples", icon: Icon, content: () => h(Examples, { choose }) }];
    }, []);
    return h(GraphiQL, {
      fetcher,
      storage,
      defaultQuery,
      ...shown,
      plugins,
      defaultHeaders: '{\n  "Authorization": "Bearer "\n}',
      defaultEditorToolsVisibility: "headers",
      isHeadersEditorEnabled: true,
      shouldPersistHeaders: false,
    });
  };

  ReactDOM.createRoot(root).render(h(Page));
})();
