// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestResetRule(t *testing.T) {
	url := bucketServer(t)
	for _, user := range []string{"a", "b", "c"} {
		wantRun(t, 0, `took 1 of 1\n.*`, "", "take", "--server", url, "--key", "free:user="+user, "--cost", "1")
	}
	at := []string{"reset", "--server", url, "--all", "--reason", "the limit was too low"}
	wantRun(t, 0, `all buckets of rule free are full; 3 buckets removed\n`, "", append(at, "--rule", "free")...)
	wantRun(t, 0, `.*5 of 5 left, full\n.*`, "", "peek", "--server", url, "--key", "free:user=b")
	wantRun(t, 0, `\{"cleared":0\}\n`, "", append(at, "--rule", "free", "--format", "json")...)
	wantRun(t, 4, "", `mete reset: .*did you mean free\?\n`, append(at, "--rule", "fre")...)
}

// An error in the command line fills nothing.
func TestResetRule_Usage(t *testing.T) {
	for _, test := range []struct {
		want string
		args []string
	}{
		{"--rule and --all go together.*", []string{"--rule", "free", "--reason", "r"}},
		{"--rule and --all go together.*", []string{"--all", "--reason", "r"}},
		{"a reason is required.*", []string{"--rule", "free", "--all"}},
		{"--rule excludes --key.*", []string{"--rule", "free", "--all", "--reason", "r", "--key", "free:user=a"}},
		{"--rule excludes --key.*", []string{"--rule", "free", "--all", "--reason", "r", "header:x=1"}},
	} {
		wantRun(t, 2, "", `mete reset: `+test.want+`\n`, append([]string{"reset", "--server", "http://127.0.0.1:1"}, test.args...)...)
	}
}

// The command goes on until the server has no next part. Its error counts the filled buckets.
func TestResetRule_Parts(t *testing.T) {
	answers := []string{`{"cleared":1000,"next":"n1"}`, `{"cleared":0,"next":"n2"}`, `{"cleared":7}`}
	var froms []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, r.ContentLength)
		_, _ = r.Body.Read(body)
		froms = append(froms, string(body))
		if len(froms) > len(answers) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `{"title":"Service Unavailable","status":503,"detail":"the store did not answer"}`)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, answers[len(froms)-1])
	}))
	defer s.Close()
	args := []string{"reset", "--server", s.URL, "--rule", "free", "--all", "--reason", "r"}
	wantRun(t, 0, `all buckets of rule free are full; 1007 buckets removed\n`, "", args...)
	want := []string{`{"rule":"free","reason":"r"}`, `{"rule":"free","reason":"r","from":"n1"}`, `{"rule":"free","reason":"r","from":"n2"}`}
	if fmt.Sprint(froms) != fmt.Sprint(want) {
		t.Errorf("asked %q, want %q", froms, want)
	}
	answers, froms = []string{`{"cleared":12,"next":"n1"}`}, nil
	wantRun(t, 3, "", `mete reset: .*the store did not answer.*\n12 buckets filled before that; run the command again to fill the others\n`, args...)
}
