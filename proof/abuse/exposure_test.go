// SPDX-License-Identifier: Apache-2.0

package abuse_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metehq/mete/proof/meted"
)

// A server that is told nothing listens on two ports, both of this machine alone.
func TestAbuse_ListensOnLoopbackAlone(t *testing.T) {
	s := meted.Start(t, "")
	found := 0
	for _, table := range []string{"tcp", "tcp6"} {
		for _, address := range listening(t, s.Process.Pid(), table) {
			found++
			if address != "0100007F" && address != "00000000000000000000000001000000" {
				t.Errorf("it listens on %s, which is not loopback", address)
			}
		}
	}
	if found != 2 {
		t.Errorf("it listens on %d addresses, want 2", found)
	}
	sample, err := os.ReadFile(filepath.Join(meted.Root(t), "cmd/internal/config/mete.yaml")) // which a test of its own compares with the defaults
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\nlisten: 127.0.0.1:8080\n", "\nadmin_listen: 127.0.0.1:8081\n"} {
		if !strings.Contains(string(sample), want) {
			t.Errorf("the defaults have no %q", want)
		}
	}
}

// listening is the addresses at which a process takes connections, as the kernel
// writes them.
func listening(t *testing.T, pid int, table string) (addresses []string) {
	t.Helper()
	own := map[string]bool{} // inodes of its sockets
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil || len(files) == 0 {
		t.Fatalf("no open files of process %d: %v", pid, err)
	}
	for _, file := range files {
		if target, err := os.Readlink(file); err == nil && strings.HasPrefix(target, "socket:[") {
			own[strings.Trim(target, "socket:[]")] = true
		}
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		const local, state, inode, isListening = 1, 3, 9, "0A"
		if fields := strings.Fields(line); len(fields) > inode && fields[state] == isListening && own[fields[inode]] {
			address, _, _ := strings.Cut(fields[local], ":")
			addresses = append(addresses, address)
		}
	}
	return addresses
}

// Nothing that tells how the server works inside is served anywhere, and nothing of
// the administrators' at the main address.
func TestAbuse_NothingElseIsServed(t *testing.T) {
	t.Parallel()
	s := start(t, perAddress("1"), "")
	debug := []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/profile?seconds=1", "/debug/vars", "/debug/requests", "/debug/", "/debug/fgprof",
		"/.env", "/.git/config", "/config", "/mete.yaml", "/meted.yaml", "/policy.json", "/../policy.json", "/%2e%2e/policy.json", "/server-status"}
	admin := []string{"/metrics", "/v1/overrides", "/v1/overrides?audit=10", "/v1/top", "/v1//top", "/v1/%74op"}
	for base, paths := range map[string][]string{s.AdminURL: debug, s.URL: append(admin, debug...)} {
		for _, path := range paths {
			if status, body := sendTarget(t, strings.TrimPrefix(base, "http://"), path); status/100 == 2 {
				t.Errorf("GET %s%s: %d %.100q, want none there", base, path, status, body)
			}
		}
	}
}

// A page of another site can neither read an answer nor change anything, even in a
// browser on the same machine.
func TestAbuse_OtherOrigins(t *testing.T) {
	t.Parallel()
	s := start(t, perAddress("1"), "")
	body := takeBody("ip:address", "192.0.2.1")
	for _, base := range []string{s.URL, s.AdminURL} {
		for _, verb := range []string{"take", "peek", "reset", "refund", "explain", "reload"} {
			for _, fields := range [][]string{
				{"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"},
				{"Origin", "https://evil.example", "Content-Type", "text/plain"},
				{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Content-Type", "text/plain"},
				{"Origin", "null", "Sec-Fetch-Site", "cross-site"},
			} {
				got := ask(t, http.MethodPost, base+"/v1/"+verb, body, fields...)
				if got.status/100 == 2 {
					t.Errorf("%s/v1/%s with %q: %d %s, want a refusal", base, verb, fields, got.status, got.body)
				}
				mustNotShare(t, verb, got)
			}
		}
		preflight := ask(t, http.MethodOptions, base+"/v1/take", "", "Origin", "https://evil.example", "Access-Control-Request-Method", "POST",
			"Access-Control-Request-Headers", "content-type,authorization", "Access-Control-Request-Private-Network", "true")
		mustNotShare(t, "preflight", preflight)
		mustNotShare(t, "overrides", ask(t, http.MethodGet, base+"/v1/overrides", "", "Origin", "https://evil.example"))
		mustNotShare(t, "metrics", ask(t, http.MethodGet, base+"/metrics", "", "Origin", "https://evil.example"))
	}
	if got := takeAs(t, s, "192.0.2.1"); got != http.StatusOK {
		t.Errorf("the one token, after all of them: status %d, want 200: none has spent it", got)
	}
}

func mustNotShare(t *testing.T, what string, got answer) {
	t.Helper()
	for name := range got.header {
		if strings.HasPrefix(name, "Access-Control-") {
			t.Errorf("%s: %s %q: no other site may read an answer", what, name, got.header[name])
		}
	}
}
