// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/cmd/internal/server"
	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/internal/testkit"
)

// savingConfig returns a configuration that saves to a new file at shutdown and at the interval every.
func savingConfig(t *testing.T, every string) (c config.Config, file string) {
	file = filepath.Join(t.TempDir(), "buckets")
	c = testConfig()
	c.Policy = policyFile(t, strings.Replace(burst("2"), "ip:address", "header:x-api-key", 1))
	c.Store = storeurl.MustParse("memory:?file=" + file + "&every=" + every)
	return c, file
}

func (r *running) takeKey(key string) int {
	status, _ := post(r.t, r.main+"/v1/take?status=429", strings.NewReader(`{"attributes":{"header:x-api-key":"`+key+`"}}`))
	return status
}

// end ends the server in good order.
func (r *running) end() {
	r.t.Helper()
	r.stop()
	if err := r.wait(); err != nil {
		r.t.Errorf("Run: %v", err)
	}
}

// Spent tokens stay spent after a restart, also if the key is secret and the bucket's key contains its
// hash.
func TestSaver_RestartsForgiveNothing(t *testing.T) {
	t.Parallel()
	c, _ := savingConfig(t, "0")
	for round, want := range []int{200, 200, 429, 429} {
		s := start(t, c)
		if got := s.takeKey("a-key-that-is-secret"); got != want {
			t.Errorf("take %d, each after a restart: status %d, want %d", round+1, got, want)
		}
		s.end()
		if first := s.log.Count("no saved buckets found"); (first == 1) != (round == 0) {
			t.Errorf("start %d: the log says %d times that nothing is saved", round+1, first)
		}
		if round > 0 && s.log.Count("buckets restored") != 1 {
			t.Errorf("start %d: the log does not say that the buckets are restored", round+1)
		}
	}
}

// A failed save is logged once and retried, and the recovery is logged.
func TestSaver_TriesAgain(t *testing.T) {
	t.Parallel()
	c, file := savingConfig(t, "10ms")
	if err := os.Mkdir(file+".1.tmp", 0o700); err != nil { // left behind, and not even a file
		t.Fatal(err)
	}
	s := start(t, c)
	testkit.Until(t, "a first save", func() bool {
		_, err := os.Stat(file)
		return err == nil
	})
	if _, err := os.Stat(file + ".1.tmp"); err == nil {
		t.Error("what an unfinished save has left is there still")
	}
	os.Remove(file)
	for os.Mkdir(file, 0o700) != nil { // it was just saved again
		os.Remove(file)
	}
	testkit.Until(t, "the log says that a save failed", func() bool { return s.log.Count("cannot save buckets") > 0 })
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "the log says that saving works again", func() bool { return s.log.Count("saved again") == 1 })
	if got := s.log.Count("cannot save buckets"); got != 1 {
		t.Errorf("the log says %d times that a save failed, want once", got)
	}
	s.end()
}

// The last save matters: where it fails, so does the server.
func TestSaver_TheLastSaveFails(t *testing.T) {
	t.Parallel()
	c, file := savingConfig(t, "0")
	s, err := server.New(t.Context(), c, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(file, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.Run(canceled(t)); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("Run: %v, want that %s could not be written", err, file)
	}
}

// A file that cannot be restored is never replaced by an empty store.
func TestNew_RefusesFiles(t *testing.T) {
	t.Parallel()
	c, file := savingConfig(t, "1m")
	if err := os.WriteFile(file, []byte("mete memstore 3\nh"), 0o600); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	_, err := server.New(t.Context(), c, log)
	if err == nil || !strings.Contains(err.Error(), file+": file is truncated: move it away") {
		t.Errorf("New: %v, want that the file is cut off", err)
	}
	if text, err := os.ReadFile(file); err != nil || len(text) != 17 {
		t.Errorf("the file was changed to %q, error %v", text, err)
	}
	c.Store = storeurl.MustParse("memory:?file=" + filepath.Dir(file) + "/none/buckets")
	if _, err := server.New(t.Context(), c, log); err == nil || !strings.Contains(err.Error(), "there is no directory "+filepath.Dir(file)+"/none: create it") {
		t.Errorf("New: %v, want that the directory is not there", err)
	}
}

// canceled returns a context that has ended.
func canceled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// Two servers with one file would replace each other's buckets: the second one does not
// start, and the file is as it was. It starts when the first one has ended.
func TestNew_LocksTheFile(t *testing.T) {
	t.Parallel()
	c, file := savingConfig(t, "0")
	s := start(t, c)
	testkit.Until(t, "a first save", func() bool {
		_, err := os.Stat(file)
		return err == nil
	})
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, err = server.New(t.Context(), c, slog.New(slog.NewTextHandler(io.Discard, nil)))
	want := fmt.Sprintf("%s is in use by another server (process %d): stop that server, or name another file", file, os.Getpid())
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("New: %v, want %q", err, want)
	}
	if after, err := os.ReadFile(file); err != nil || !bytes.Equal(after, before) {
		t.Errorf("the file has changed, error %v", err)
	}
	s.end()
	start(t, c).end()
}

// A lock ends with its process, also where that is killed.
func TestNew_LockEndsWithTheProcess(t *testing.T) {
	t.Parallel()
	if file, ok := os.LookupEnv(lockVar); ok {
		c, _ := savingConfig(t, "0")
		c.Store = storeurl.MustParse("memory:?file=" + file + "&every=0")
		start(t, c)
		if err := os.WriteFile(file+".locked", nil, 0o600); err != nil {
			t.Fatal(err)
		}
		select {} // until it is killed
	}
	c, file := savingConfig(t, "0")
	cmd := exec.Command(os.Args[0], "-test.run=^TestNew_LockEndsWithTheProcess$")
	cmd.Env = append(os.Environ(), lockVar+"="+file)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	testkit.Until(t, "the other process has locked the file", func() bool {
		_, err := os.Stat(file + ".locked")
		return err == nil
	})
	want := fmt.Sprintf("(process %d)", cmd.Process.Pid)
	if _, err := server.New(t.Context(), c, slog.New(slog.NewTextHandler(io.Discard, nil))); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("New: %v, want %q", err, want)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	start(t, c).end()
}

// lockVar has the file of the process that is killed.
const lockVar = "METE_TEST_LOCKED_FILE"

// A server with a broken policy does not keep the file locked.
func TestNew_UnlocksWhereItFails(t *testing.T) {
	t.Parallel()
	c, _ := savingConfig(t, "0")
	good := c.Policy
	c.Policy = policyFile(t, "{")
	if _, err := server.New(t.Context(), c, slog.New(slog.NewTextHandler(io.Discard, nil))); err == nil {
		t.Fatal("New with a broken policy: no error")
	}
	c.Policy = good
	start(t, c).end()
}
