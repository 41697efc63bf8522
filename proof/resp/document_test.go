// SPDX-License-Identifier: Apache-2.0

package resp_test

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/proof/meted"
)

func TestMain(m *testing.M) { meted.Main(m) }

// fence is a block of the page: its language, the name of its file, its text.
var fence = regexp.MustCompile("(?ms)^```([a-z]+)(?: ([a-z.]+))?\n(.*?)^```$")

// TestDocument follows doc/resp.md: it saves the files, starts the servers, and runs each command.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(meted.Root(t), "doc", "resp.md"))
	if err != nil {
		t.Fatal(err)
	}
	ports := strings.NewReplacer("6380", portOf(t), "6381", portOf(t))
	dir, commands := t.TempDir(), 0
	taken := map[string]bool{}                                            // HTTP addresses of the servers on the page
	environment := append(os.Environ(), "HOME="+t.TempDir(), "FAKETTY=1") // redis-cli prints as on a terminal
	for _, block := range fence.FindAllStringSubmatch(string(text), -1) {
		language, file, text := block[1], block[2], block[3]
		if file != "" {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(ports.Replace(text)), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if language != "console" {
			t.Errorf("a block that is neither a file nor commands:\n%s", text)
		}
		for _, part := range strings.Split("\n"+text, "\n$ ")[1:] {
			commands++
			line, want, _ := strings.Cut(strings.TrimSuffix(part, "\n"), "\n")
			words := strings.Fields(ports.Replace(line))
			if words[0] == "mete" {
				for _, address := range addressesOf(t, dir, line) {
					if taken[address] {
						t.Errorf("$ %s\nlistens on %s, as a server above does", line, address)
					}
					taken[address] = true
				}
				meted.Run(t, dir, words[2:]...)
				continue
			}
			if got := runLine(t, dir, environment, ports.Replace(line)); !matches(want, got) {
				t.Errorf("$ %s\nprints\n%s\nand the page shows\n%s", line, got, want)
			}
		}
	}
	if commands < 15 {
		t.Errorf("%d commands, want at least 15", commands)
	}
}

// httpAddress is a line with an address of the HTTP listeners in a settings file.
var httpAddress = regexp.MustCompile(`(?m)^((?:admin_)?listen): *(\S+)`)

// addressesOf returns the HTTP addresses of a command mete serve as the page has it. The test runs it with others.
func addressesOf(t *testing.T, dir, line string) []string {
	addresses := map[string]string{"listen": "127.0.0.1:8080", "admin_listen": "127.0.0.1:8081"}
	if _, file, found := strings.Cut(line, "--config "); found {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range httpAddress.FindAllStringSubmatch(string(text), -1) {
			addresses[found[1]] = found[2]
		}
	}
	return slices.Collect(maps.Values(addresses))
}

func portOf(t testing.TB) string {
	addr := proctest.FreeAddr(t)
	return addr[strings.LastIndexByte(addr, ':')+1:]
}

func runLine(t testing.TB, dir string, environment []string, line string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", line)
	cmd.Dir, cmd.Env = dir, environment
	output, err := cmd.CombinedOutput()
	if _, failed := err.(*exec.ExitError); err != nil && !failed {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(output))
}

// matches reports whether got is want, in which … stands for any text.
func matches(want, got string) bool {
	parts := strings.Split(want, "…")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile("(?s)^" + strings.Join(parts, ".*") + "$").MatchString(got)
}
