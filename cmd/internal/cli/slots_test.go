// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// The commands about slots, against a server that runs one export per tenant.
func TestSlots(t *testing.T) {
	runArgs := serveAPI(t, `{"rules": [{"name": "exports", "limit_keys": ["header:x-tenant"], "algorithm": "concurrency", "max": 1, "lease": "1h"}]}`)
	run := func(code int, args string) (stdout, stderr string) {
		t.Helper()
		return runArgs(code, strings.Fields(args)...)
	}
	out, _ := run(0, "take header:x-tenant=acme")
	found := regexp.MustCompile(`^allowed\n  exports  0 left, full again in \S+\n  slot ([0-9a-f]{32}) ends in 1h\n$`).FindStringSubmatch(out)
	if found == nil {
		t.Fatalf("take printed %q, want a slot", out)
	}
	slot := found[1] + " header:x-tenant=acme"
	for _, tt := range []struct {
		code         int
		args         string
		stdout, errs string
	}{
		{1, "take header:x-tenant=acme", "concurrency_exceeded", ""},
		{1, "peek --key exports:x-tenant=acme", "\n  slot " + found[1] + " ends in ", ""},
		{0, "slots renew " + slot, "held for 1h\n", ""},
		{0, "slots renew --format json " + slot, `{"held":true,"lease":3600}`, ""},
		{4, "slots renew " + found[1], "", "no concurrency limit applies"},
		{0, "slots release " + slot, "released\n", ""},
		{0, "slots release --format json " + slot, `{"done":true}`, ""},
		{1, "slots renew " + slot, "the slot has ended or was released\n", ""},
		{1, "slots renew --format json " + slot, `{"held":false}`, ""},
		{0, "take header:x-tenant=acme", "allowed", ""},
		{2, "slots release x header:x-tenant=acme", "", "32 hexadecimal digits"},
		{4, "slots release " + found[1], "", "no concurrency limit applies"},
		{2, "slots release", "", "the slot is required"},
		{2, "slots renew header:x-tenant=acme", "", "32 hexadecimal digits"},
		{2, fmt.Sprintf("slots renew %s header:x-tenant", found[1]), "", "is not NAME=VALUE"},
		{2, "slots", "", "a command is required: renew or release"},
		{2, "slots end " + slot, "", "it must be renew or release"},
	} {
		out, errs := run(tt.code, tt.args)
		if !strings.Contains(out, tt.stdout) || !strings.Contains(errs, tt.errs) {
			t.Errorf("%s: %q %q, want %q %q", tt.args, out, errs, tt.stdout, tt.errs)
		}
	}
}
