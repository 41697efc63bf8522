// SPDX-License-Identifier: Apache-2.0

package resp_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/metehq/mete/respapi"
)

// run runs a program of Redis with the host and port of the server, and returns its output.
func run(t testing.TB, s *server, input, program string, args ...string) string {
	t.Helper()
	output, err := try(t, s, input, program, args...)
	if err != nil {
		t.Errorf("%s %q: %v\n%s", program, args, err, output)
	}
	return output
}

func try(t testing.TB, s *server, input, program string, args ...string) (string, error) {
	t.Helper()
	host, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, append([]string{"-h", host, "-p", port}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir()) // for the history of redis-cli
	cmd.Stdin = strings.NewReader(input)
	output, err := cmd.CombinedOutput()
	if _, failed := err.(*exec.ExitError); err != nil && !failed {
		t.Fatalf("%v: install Debian's redis-tools, or run scripts/setup", err)
	}
	return string(output), err
}

// wantOutput compares the output of redis-cli.
func wantOutput(t testing.TB, s *server, input, want string, args ...string) {
	t.Helper()
	if got := run(t, s, input, "redis-cli", args...); got != want {
		t.Errorf("redis-cli %q prints\n%swant\n%s", args, got, want)
	}
}

const readable = "1) (integer) 0\n2) (integer) 3\n3) (integer) 2\n4) (integer) -1\n5) (integer) 60\n"

func TestRedisCLI(t *testing.T) {
	t.Parallel()
	s := serve(t, respapi.Config{})
	wantOutput(t, s, "", "PONG\n", "PING")
	wantOutput(t, s, "", "0\n3\n2\n-1\n60\n", "CL.THROTTLE", "a", "2", "1", "60")
	wantOutput(t, s, "", readable, "--no-raw", "CL.THROTTLE", "b", "2", "1", "60")
	wantOutput(t, s, "", readable, "-3", "--no-raw", "CL.THROTTLE", "c", "2", "1", "60")
	wantOutput(t, s, "", "[0,3,2,-1,60]\n", "-3", "--json", "CL.THROTTLE", "d", "2", "1", "60")
	wantOutput(t, s, "PING\nCL.THROTTLE e 2 1 60\nCL.THROTTLE e 2 1 60\nPING\n", "PONG\n0\n3\n2\n-1\n60\n0\n3\n1\n-1\n120\nPONG\n")
	wantOutput(t, s, "", "0\n3\n2\n-1\n60\n0\n3\n1\n-1\n120\n", "-r", "2", "-i", "0", "CL.THROTTLE", "f", "2", "1", "60")
	if got := run(t, s, "", "redis-cli", "NOSUCH", "x"); !strings.HasPrefix(got, "ERR unknown command 'NOSUCH'") {
		t.Errorf("redis-cli prints %q for an unknown command", got)
	}
}

// On a terminal, redis-cli starts with COMMAND DOCS, for its hints.
func TestRedisCLI_Terminal(t *testing.T) {
	t.Parallel()
	s := serve(t, respapi.Config{})
	host, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "script", "--quiet", "--return", "--command", "redis-cli -h "+host+" -p "+port, os.DevNull)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "TERM=dumb")
	cmd.Stdin = strings.NewReader("CL.THROTTLE a 2 1 60\nquit\n")
	output, err := cmd.CombinedOutput()
	if want := strings.ReplaceAll(readable, "\n", "\r\n"); err != nil || !strings.Contains(string(output), want) {
		t.Errorf("redis-cli on a terminal: %v\n%s\nwant\n%s", err, output, readable)
	}
}

func TestRedisCLI_Pipe(t *testing.T) {
	t.Parallel()
	s := serve(t, respapi.Config{})
	input := strings.Repeat("*5\r\n$11\r\nCL.THROTTLE\r\n$1\r\na\r\n$3\r\n999\r\n$1\r\n1\r\n$2\r\n60\r\n", 1000)
	if got := run(t, s, input, "redis-cli", "--pipe"); !strings.Contains(got, "errors: 0, replies: 1000") {
		t.Errorf("redis-cli --pipe prints %q, want 1000 replies", got)
	}
	if got := run(t, s, "", "redis-cli", "CL.THROTTLE", "a", "999", "1", "60", "0"); !strings.HasPrefix(got, "0\n1000\n0\n") {
		t.Errorf("after 1000 requests: %q, want none left", got)
	}
}

func TestRedisCLI_Authenticate(t *testing.T) {
	t.Parallel()
	s := serve(t, respapi.Config{Authenticate: authenticate})
	if got := run(t, s, "", "redis-cli", "CL.THROTTLE", "a", "2", "1", "60"); !strings.HasPrefix(got, "NOAUTH ") {
		t.Errorf("without a token: %q, want NOAUTH", got)
	}
	if got := run(t, s, "", "redis-cli", "--no-auth-warning", "-a", "wrong", "PING"); !strings.Contains(got, "WRONGPASS ") {
		t.Errorf("with a wrong token: %q, want WRONGPASS", got)
	}
	if got := run(t, s, "", "redis-cli", "--no-auth-warning", "-a", readToken, "CL.THROTTLE", "a", "2", "1", "60"); !strings.HasPrefix(got, "NOPERM ") {
		t.Errorf("with the role read: %q, want NOPERM", got)
	}
	for i, args := range [][]string{
		{"-a", operateToken},
		{"--user", "default", "--pass", operateToken},
		{"-3", "--user", "default", "--pass", operateToken},
		{"-u", "redis://default:" + operateToken + "@" + s.addr},
	} {
		key := string(rune('a' + i))
		wantOutput(t, s, "", "0\n3\n2\n-1\n60\n", append(append([]string{"--no-auth-warning"}, args...), "--raw", "CL.THROTTLE", key, "2", "1", "60")...)
	}
}

func TestRedisCLI_TLS(t *testing.T) {
	t.Parallel()
	s, authority := serveTLS(t, respapi.Config{})
	wantOutput(t, s, "", "0\n3\n2\n-1\n60\n", "--tls", "--cacert", authority, "CL.THROTTLE", "a", "2", "1", "60")
}

func TestRedisBenchmark(t *testing.T) {
	t.Parallel()
	s := serve(t, respapi.Config{Authenticate: authenticate})
	for _, args := range [][]string{
		{"-P", "1", "CL.THROTTLE", "a:__rand_int__", "99", "1", "60"},
		{"-P", "16", "-r", "1000", "CL.THROTTLE", "b:__rand_int__", "99", "1", "60"},
		{"-P", "16", "--threads", "2", "CL.THROTTLE", "c", "99", "1", "60"},
		{"-t", "ping_inline,ping_mbulk"},
	} {
		got := run(t, s, "", "redis-benchmark", append([]string{"-a", operateToken, "-q", "-n", "2000", "-c", "5"}, args...)...)
		if !strings.Contains(got, "requests per second") || strings.Contains(got, "Error") {
			t.Errorf("redis-benchmark %q prints %q, want requests per second", args, got)
		}
	}
	if got := run(t, s, "", "redis-cli", "--no-auth-warning", "-a", operateToken, "CL.THROTTLE", "c", "99", "1", "60", "0"); !strings.HasPrefix(got, "0\n100\n0\n") {
		t.Errorf("after redis-benchmark: %q, want none left", got)
	}
}
