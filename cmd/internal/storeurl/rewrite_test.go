// SPDX-License-Identifier: Apache-2.0

package storeurl

import "testing"

// The files of these URLs need not be there, nor need the URLs be valid.
func TestUnder(t *testing.T) {
	for raw, want := range map[string]string{
		"memory:?file=a&file=b":                                        "memory:?file=a&file=b",
		"redis://host/?file=a":                                         "redis://host/?file=a",
		"rediss://u:p@a,b?ca=c.pem&key=/k%26&x=c":                      "rediss://u:p@a,b?ca=/etc/x%26y/c.pem&key=/k%26&x=c",
		"postgres://a/d?sslrootcert=c.pem&prefix=x&passfile=..%2F+%25": "postgres://a/d?sslrootcert=/etc/x%26y/c.pem&prefix=x&passfile=/etc/%2B%25",
		"postgresql://a/d?sslrootcert=system&sslkey=system":            "postgresql://a/d?sslrootcert=system&sslkey=/etc/x%26y/system",
		"%": "%",
	} {
		if got := resolveIn("/etc/x&y", raw); got != want {
			t.Errorf("under(%q) = %q, want %q", raw, got, want)
		}
	}
}
