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
	// fence matches a block of a page: its language and its text.
	fence = regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```$")

	// port matches the default ports of the service.
	port = regexp.MustCompile(`\b(localhost:)(8080|6070)\b`)
)

// TestEnvoyDocument runs the commands of doc/envoy.md, with free ports. YAML blocks are for Envoy, which tests do not run.
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
	ports, environ := freePorts(t)
	text := port.ReplaceAllStringFunc(string(page), func(address string) string {
		return map[string]string{"localhost:8080": ports.http, "localhost:6070": ports.debug}[address]
	})
	programs, commands := 0, 0
	for _, block := range fence.FindAllStringSubmatch(text, -1) {
		switch language, lines := block[1], block[2]; language {
		case "yaml":
		case "sh":
			programs++
			cmd := exec.Command("sh", "-e", "-c", strings.Replace(lines, "\nmete ratelimit\n", "\nexec mete ratelimit\n", 1))
			cmd.Dir, cmd.Env = root, append(os.Environ(), environ...)
			proctest.Start(t, cmd).WaitReady(serverTimeout, proctest.HTTP("http://"+ports.http+"/healthcheck"))
		case "console":
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
	if programs != 1 || commands != 3 {
		t.Errorf("%d programs and %d commands, want 1 and 3", programs, commands)
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
