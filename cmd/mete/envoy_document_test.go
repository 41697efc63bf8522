// SPDX-License-Identifier: Apache-2.0

//go:build !windows

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/metehq/mete/internal/proctest"
)

var (
	// fence matches a block of a page: its language, the name of its file, and its text.
	fence = regexp.MustCompile("(?ms)^```([a-z]+)(?: ([a-z.]+))?\n(.*?)^```$")

	// port matches the default ports of the servers.
	port = regexp.MustCompile(`\b(localhost:)(8080|6070)\b`)
)

// TestEnvoyDocument follows doc/envoy.md with free ports: it saves the files, starts the servers, and runs the commands.
// YAML blocks without a file name are for Envoy, which tests do not run.
func TestEnvoyDocument(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "doc", "envoy.md"))
	if err != nil {
		t.Fatal(err)
	}
	proctest.Find(t, "curl", "curl")
	policy, dropin, found := strings.Cut(string(page), "\n## Drop-in for envoyproxy/ratelimit\n")
	if !found {
		t.Fatal("the page has no section about envoyproxy/ratelimit")
	}

	dir, web, admin, calls := t.TempDir(), proctest.FreeAddr(t), proctest.FreeAddr(t), proctest.FreeAddr(t)
	text := strings.NewReplacer("localhost:8080", web, "--grpc-listen 9001", "--grpc-listen "+calls+" --listen "+web+" --admin-listen "+admin).Replace(policy)
	followPage(t, text, dir, "http://"+web+"/livez", []string{"XDG_RUNTIME_DIR=" + dir}, 1)

	ports, environ := freePorts(t)
	text = port.ReplaceAllStringFunc(dropin, func(address string) string {
		return map[string]string{"localhost:8080": ports.http, "localhost:6070": ports.debug}[address]
	})
	followPage(t, text, root, "http://"+ports.http+"/healthcheck", environ, 3)
}

// followPage saves the files of a page in dir, starts its only server there, and runs its commands.
func followPage(t *testing.T, text, dir, ready string, environ []string, wantCommands int) {
	t.Helper()
	programs, commands := 0, 0
	for _, block := range fence.FindAllStringSubmatch(text, -1) {
		switch language, file, lines := block[1], block[2], block[3]; {
		case file != "":
			if err := os.WriteFile(filepath.Join(dir, file), []byte(lines), 0o600); err != nil {
				t.Fatal(err)
			}
		case language == "yaml":
		case language == "sh":
			programs++
			before, last := "", strings.TrimSuffix(lines, "\n")
			if at := strings.LastIndexByte(last, '\n'); at >= 0 {
				before, last = last[:at+1], last[at+1:]
			}
			cmd := exec.Command("sh", "-e", "-c", before+"exec "+last)
			cmd.Dir, cmd.Env = dir, append(os.Environ(), environ...)
			proctest.Start(t, cmd).WaitReady(serverTimeout, proctest.HTTP(ready))
		case language == "console":
			for _, part := range strings.Split("\n"+lines, "\n$ ")[1:] {
				commands++
				line, want, _ := strings.Cut(strings.TrimSuffix(part, "\n"), "\n")
				output, err := exec.Command("sh", "-c", line).CombinedOutput()
				if got := strings.TrimSuffix(string(output), "\n"); err != nil || !matchShown(want, got) {
					t.Errorf("$ %s\nprints (%v)\n%s\nand the page shows\n%s", line, err, got, want)
				}
			}
		default:
			t.Errorf("the test runs no %s:\n%s", language, lines)
		}
	}
	if programs != 1 || commands != wantCommands {
		t.Errorf("%d programs and %d commands, want 1 and %d", programs, commands, wantCommands)
	}
}

// matchShown reports whether got is the output on the page, in which … stands for any text.
func matchShown(shown, got string) bool {
	parts := strings.Split(shown, "…")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile("(?s)^" + strings.Join(parts, ".*") + "$").MatchString(got)
}
