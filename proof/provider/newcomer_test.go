// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/proof/meted"
	"github.com/metehq/mete/proof/provider"
)

// A newcomer follows the first section of doc/ai.md, with the simulator in the place of OpenAI.
func TestNewcomer(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(meted.Root(t), "doc", "ai.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "## A gateway in five minutes\n")
	section, _, _ = strings.Cut(section, "\n## ")
	_, rest, _ := strings.Cut(section, "```yaml\n")
	policy, rest, _ := strings.Cut(rest, "```\n")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "ai.yaml"), []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	var commands []string
	for line := range strings.Lines(strings.ReplaceAll(rest, "\\\n", "")) {
		command, ok := strings.CutPrefix(line, "    ")
		if setting, exported := strings.CutPrefix(command, "export "); exported {
			name, value, _ := strings.Cut(strings.TrimSpace(setting), "=")
			t.Setenv(name, value)
		} else if ok {
			commands = append(commands, strings.TrimSpace(command))
		}
	}
	if len(commands) != 2 {
		t.Fatalf("the section has the commands %q, want mete serve and curl", commands)
	}
	sim := provider.Start(t)
	serve := strings.Fields(strings.Replace(commands[0], "https://api.openai.com", sim.URL, 1))
	server := meted.Run(t, dir, serve[2:]...)

	curl := strings.Replace(commands[1], "http://127.0.0.1:8080", server.URL, 1)
	curl = proctest.Find(t, "curl", "curl") + " --silent --show-error --include" + strings.TrimPrefix(curl, "curl")
	cmd := exec.CommandContext(t.Context(), "bash", "-c", curl)
	cmd.Env = append(os.Environ(), "OPENAI_API_KEY=sk-newcomer")
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", curl, err, output)
	}
	answer := strings.ToLower(string(output))
	for _, want := range []string{"http/1.1 200", "x-ratelimit-remaining-tokens: ", "x-ratelimit-limit-tokens: 20000", `"object":"chat.completion"`, strings.ToLower(provider.Word)} {
		if !strings.Contains(answer, want) {
			t.Errorf("the answer has no %q:\n%s", want, output)
		}
	}
}
