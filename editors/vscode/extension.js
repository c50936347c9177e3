// Starts `fencepost lsp` and shows the answers to "ask why" in an output channel.
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

function activate(context) {
  const path = vscode.workspace.getConfiguration("fencepost").get("path", "fencepost");
  const channel = vscode.window.createOutputChannel("Fencepost");
  const endings = "**/*.{toml,litmus,cat,cu,cuh,cl,ptx}";
  const server = { command: path, args: ["lsp"] };
  client = new LanguageClient("fencepost", "Fencepost", server, {
    documentSelector: [{ scheme: "file", pattern: endings }],
    outputChannel: channel,
    middleware: {
      executeCommand: async (command, parameters, next) => {
        const answer = await next(command, parameters);
        if (typeof answer === "string") {
          channel.appendLine(answer + "\n");
          channel.show(true);
        }
        return answer;
      },
    },
  });
  context.subscriptions.push(channel);
  return client.start();
}

function deactivate() {
  return client?.stop();
}

module.exports = { activate, deactivate };
