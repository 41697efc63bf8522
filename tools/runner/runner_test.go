// SPDX-License-Identifier: Apache-2.0

// Package runner tests scripts/test, which judges each change.
package runner

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fakeGo stands in for the go command. The tests of the package in FAILS fail.
const fakeGo = `#!/bin/sh
case "$1" in
build)
	while [ "$1" != -o ]; do shift; done
	printf '#!/bin/sh\nexec "$@"\n' >"$2"
	chmod +x "$2" ;;
list)
	printf 'github.com/metehq/mete/%s\n' bucket memstore proof/deploy ;;
test)
	for package; do
		case $package in
		github.com/metehq/mete/"$FAILS") printf -- '--- FAIL: TestOfIt (0.00s)\nFAIL\t%s\t0.2s\n' "$package"; status=1 ;;
		github.com/*) printf 'ok  \t%s\t0.1s\n' "$package" ;;
		esac
	done
	exit ${status:-0} ;;
esac
`

func TestExitStatus(t *testing.T) {
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "go"), []byte(fakeGo), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		suite, fails string
		ok           bool
		deploy       bool // proof/deploy is tested
	}{
		{"short", "none", true, false},
		{"short", "bucket", false, false},   // without the race detector
		{"short", "memstore", false, false}, // with it
		{"long", "none", true, true},
		{"long", "proof/deploy", false, true},
		{"none", "none", false, false},
	} {
		cmd := exec.Command("../../scripts/test", tt.suite)
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "FAILS="+tt.fails, "METE_TEST_SEED=1")
		var output bytes.Buffer
		cmd.Stdout, cmd.Stderr = &output, &output
		err := cmd.Run()
		text := output.String()
		if (err == nil) != tt.ok || strings.Contains(text, "test: failed") != (tt.fails != "none") || strings.Contains(text, "/proof/deploy") != tt.deploy {
			t.Errorf("scripts/test %s where %s fails: %v\n%s", tt.suite, tt.fails, err, text)
		}
	}
}
