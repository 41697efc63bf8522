// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"slices"
	"testing"

	"github.com/metehq/mete/cmd/internal/cli"
)

func TestArgsOf(t *testing.T) {
	for _, c := range []struct{ line, want []string }{
		{nil, nil},
		{[]string{"mete"}, nil},
		{[]string{"mete", "check", "policy.yaml"}, []string{"check", "policy.yaml"}},
		{[]string{"/bin/ratelimit"}, []string{"ratelimit"}},
		{[]string{"ratelimit.exe", "--check"}, []string{"ratelimit", "--check"}},
		{[]string{"/opt/ratelimit/mete", "version"}, []string{"version"}},
		{[]string{"mete", "ratelimit"}, []string{"ratelimit"}},
	} {
		if got := cli.ArgsOf(c.line); !slices.Equal(got, c.want) {
			t.Errorf("%q: got %q, want %q", c.line, got, c.want)
		}
	}
}
