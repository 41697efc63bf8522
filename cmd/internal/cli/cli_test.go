// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"strings"
	"testing"
)

func TestMain_ExitCodesAndWords(t *testing.T) {
	tests := []struct {
		args   string
		code   int
		stdout string // contained in it; empty: nothing is printed
		stderr string
	}{
		{"", 0, "Usage: mete COMMAND", ""},
		{"help", 0, "Usage: mete COMMAND", ""},
		{"-h", 0, "Usage: mete COMMAND", ""},
		{"--help", 0, "Usage: mete COMMAND", ""},
		{"help take", 0, "Usage: mete take [flags]", ""},
		{"take -h", 0, "Usage: mete take [flags]", ""},
		{"take path=/x --help", 0, "Usage: mete take [flags]", ""},
		{"help config", 0, "admin_listen: 127.0.0.1:8081", ""},
		{"version", 0, "mete ", ""},
		{"--version", 0, "mete ", ""},

		{"sreve", 2, "", `unknown command "sreve"; did you mean 'mete serve'?`},
		{"help tkae", 2, "", "mete: unknown command \"tkae\"; did you mean 'mete take'?\nSee 'mete help'."},
		{"help rules st", 2, "", "mete: unknown command \"st\"; did you mean 'mete rules set'?\n"},
		{"lint", 2, "", "did you mean 'mete check'?"},
		{"frobnicate", 2, "", "unknown command \"frobnicate\"\nSee 'mete help'."},
		{"version now", 2, "", `mete version: unexpected argument "now"`},

		{"serve --polcy x", 2, "", "mete serve: unknown flag --polcy; did you mean --policy?\nSee 'mete help serve'."},
		{"serve --frobnicate", 2, "", "mete serve: unknown flag --frobnicate\n"},
		{"serve --listen", 2, "", "mete serve: no value for --listen"},
		{"serve /does/not/exist", 2, "", "mete serve: policy: stat /does/not/exist"},
		{"serve a.yaml b.yaml", 2, "", `mete serve: unexpected argument "b.yaml"`},
		{"serve a.yaml --policy b.yaml", 2, "", `mete serve: unexpected argument "a.yaml"`},
		{"serve --trust-jwt=perhaps", 2, "", "trust_jwt: \"perhaps\" is neither true nor false"},
		{"serve --listen nowhere --log-level loud", 2, "", "mete serve: listen: \"nowhere\" is not host:port"},
		{"serve --listen nowhere --log-level loud", 2, "", "mete serve: log_level: must be debug, info, warn or error"},
		{"serve --config /does/not/exist", 2, "", "mete serve: config: open /does/not/exist"},
		{"serve --policy /does/not/exist", 2, "", "mete serve: policy: stat /does/not/exist"},
		{"serve --store postgres://localhost/d?sslmod=x", 2, "", "mete serve: store: unknown parameter \"sslmod\""},
		{"serve --store redis://a,b", 2, "", "mete serve: store: more than one host"},
		{"serve --store floppy:a", 2, "", "unknown kind of store"},
		{"serve --store memory:?max_keys=-1", 2, "", "max_keys: \"-1\": must be a whole number above 0"},
		{"serve --store memory:?size=1", 2, "", "unknown parameter \"size\""},
		{"serve --trusted-proxies 10.0.0.0/8,here", 2, "", "trusted_proxies: \"here\" is neither"},

		{"take path", 2, "", `mete take: "path" is not NAME=VALUE`},
		{"take header:=1", 2, "", "mete take: "},
		{"take path=/a path=/b", 2, "", "mete take: attribute path is given twice"},
		{"take HEADER:X-A=1 header:x-a=2", 2, "", "mete take: attribute header:x-a is given twice"},
		{"take --cost -1", 2, "", "mete take: invalid value \"-1\" for --cost"},
		{"take --cost 0", 2, "", "a cost must be above 0"},
		{"take --cost NaN", 2, "", "invalid value \"NaN\" for --cost"},
		{"take --max-wait 5", 2, "", "invalid value \"5\" for --max-wait"},
		{"take --format xml", 2, "", `invalid value "xml" for --format: must be text or json`},
		{"take --server localhost", 2, "", "--server: "},
		{"peek --server http://127.0.0.1:1", 3, "", "mete peek: http://127.0.0.1:1 does not answer: "},
	}
	for _, tt := range tests {
		stdout, stderr, code := run(t, strings.Fields(tt.args)...)
		if code != tt.code {
			t.Errorf("mete %s: code %d, want %d (stderr %q)", tt.args, code, tt.code, stderr)
		}
		if !strings.Contains(stdout, tt.stdout) || tt.stdout == "" && stdout != "" {
			t.Errorf("mete %s: stdout %q, want %q in it", tt.args, stdout, tt.stdout)
		}
		if !strings.Contains(stderr, tt.stderr) || tt.stderr == "" && stderr != "" {
			t.Errorf("mete %s: stderr %q, want %q in it", tt.args, stderr, tt.stderr)
		}
	}
}

func TestHelp_FitsATerminal(t *testing.T) {
	for _, name := range append(commandNames(t), "config") {
		for line := range strings.Lines(helpOf(t, name)) {
			if n := len([]rune(line)) - 1; n > 80 {
				t.Errorf("mete help %s: a line of %d letters: %q", name, n, line)
			}
		}
	}
}
