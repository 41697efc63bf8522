// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/internal/testkit"
	"github.com/metehq/mete/proof/meted"
)

func TestMain(m *testing.M) { meted.Main(m) }

// exposure is the most that systemd-analyze security may find, in tenths: 12 is
// 1.2 of 10.
const exposure = "12"

// unitFile writes a copy of the unit with the path of the test's program. It replaces old with text.
func unitFile(t *testing.T, old, text string) string {
	t.Helper()
	unit := string(read(t, "systemd", "mete.service"))
	if old != "" && !strings.Contains(unit, old) {
		t.Fatalf("the unit has no %q", old)
	}
	unit = strings.ReplaceAll(unit, "/usr/local/bin/mete", meted.Program(t))
	if old != "" {
		unit = strings.ReplaceAll(unit, old, text)
	}
	path := filepath.Join(t.TempDir(), "mete.service")
	if err := os.WriteFile(path, []byte(unit), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// analyze runs systemd-analyze and returns its output.
func analyze(t *testing.T, args ...string) (string, error) {
	t.Helper()
	output, err := exec.Command(proctest.Find(t, "systemd-analyze", "systemd"), args...).CombinedOutput()
	return string(output), err
}

func TestSystemd_Verify(t *testing.T) {
	if said, err := analyze(t, "verify", "--man=no", unitFile(t, "", "")); err != nil || said != "" {
		t.Errorf("systemd-analyze verify: %v\n%s", err, said)
	}
	for _, broken := range [][2]string{
		{"Type=notify", "Type=notfy"},
		{"ProtectSystem=", "ProtectSytem="},
		{"@system-service", "@sytem-service"},
		{"ExecStart=", "ExecStart=/nowhere"},
	} {
		if said, _ := analyze(t, "verify", "--man=no", unitFile(t, broken[0], broken[1])); said == "" {
			t.Errorf("systemd-analyze verify says nothing of %s", broken[1])
		}
	}
}

func TestSystemd_Security(t *testing.T) {
	args := []string{"security", "--no-pager", "--offline=true", "--threshold=" + exposure}
	if said, err := analyze(t, append(args, unitFile(t, "", ""))...); err != nil {
		t.Errorf("systemd-analyze security: %v\n%s", err, said)
	}
	if said, err := analyze(t, append(args, unitFile(t, "CapabilityBoundingSet=\n", ""))...); err == nil {
		t.Errorf("systemd-analyze security finds a unit with all capabilities as good\n%s", said)
	}
}

// A unit's directives, the last of each name.
func directives(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for line := range strings.Lines(string(read(t, "systemd", "mete.service"))) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(name, "#") {
			found[name] = value
		}
	}
	return found
}

// TestSystemd_Runs does with the program what systemd would: its files, its
// environment, its notifications and its signals.
func TestSystemd_Runs(t *testing.T) {
	unit := directives(t)
	if unit["ExecReload"] != "/bin/kill -HUP $MAINPID" || unit["Type"] != "notify" {
		t.Fatalf("the unit reloads by %q and is of type %q, which is not what follows", unit["ExecReload"], unit["Type"])
	}
	dir := copyOf(t, "systemd")
	credentials, state := t.TempDir(), t.TempDir()
	name, _, _ := strings.Cut(unit["LoadCredential"], ":")
	write(t, filepath.Join(credentials, name), adminToken+"\n")
	t.Setenv("CREDENTIALS_DIRECTORY", credentials)
	t.Setenv("STATE_DIRECTORY", state)
	t.Setenv("WATCHDOG_USEC", "200000")
	told := notifySocket(t)
	s := meted.Run(t, dir, "--config", filepath.Join(dir, "mete.yaml"))

	await(t, told, "READY=1")
	await(t, told, "WATCHDOG=1")
	write(t, filepath.Join(dir, "policy.yaml"), strings.Replace(string(read(t, "systemd", "policy.yaml")), "burst: 100", "burst: 200", 1))
	s.Process.Signal(syscall.SIGHUP)
	testkit.Until(t, "it reloads", func() bool { return strings.Contains(s.Log(), "policy reloaded") })
	if status := get(t, s.AdminURL+"/metrics", adminToken); status != 200 {
		t.Errorf("/metrics with the credential: status %d", status)
	}
	s.Process.Signal(syscall.SIGTERM)
	await(t, told, "STOPPING=1")
	<-s.Process.Done() // a second signal would end it at once
	if err := s.Process.Stop(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	if _, err := os.Stat(filepath.Join(state, "buckets")); err != nil {
		t.Errorf("the buckets are not saved: %v", err)
	}
	if s, within := timeouts(t, filepath.Join(dir, "mete.yaml")), duration(t, unit["TimeoutStopSec"]); within < s+2*time.Second {
		t.Errorf("TimeoutStopSec=%v, and it may take %v to end", within, s)
	}
}

// notifySocket listens in place of systemd.
func notifySocket(t *testing.T) *net.UnixConn {
	t.Helper()
	dir, err := os.MkdirTemp("", "mete") // t.TempDir may be longer than a socket's name can be
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	return conn
}

// await waits until a line is told.
func await(t *testing.T, told *net.UnixConn, line string) {
	t.Helper()
	told.SetReadDeadline(time.Now().Add(meted.Patience))
	buf := make([]byte, 1<<10)
	for {
		n, err := told.Read(buf)
		if err != nil {
			t.Fatalf("it does not tell %s: %v", line, err)
		}
		for l := range strings.Lines(string(buf[:n])) {
			if strings.TrimSpace(l) == line {
				return
			}
		}
	}
}
