// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/metehq/mete/internal/testkit"
	"github.com/metehq/mete/policyyaml"
)

func TestReload_KeepsWhatIsSpent(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.Policy = policyFile(t, burst("2"))
	s := start(t, c)
	for i, want := range []int{200, 200, 429} {
		if got := s.take("192.0.2.1"); got != want {
			t.Fatalf("take %d: status %d, want %d", i, got, want)
		}
	}
	write(t, c.Policy, burst("3"))
	testkit.Until(t, "a renamed file is reloaded", func() bool { return s.log.Count("policy reloaded") == 1 })
	for i, want := range []int{200, 429} {
		if got := s.take("192.0.2.1"); got != want {
			t.Errorf("take %d after the burst was raised by 1: status %d, want %d", i, got, want)
		}
	}
	if got := s.take("192.0.2.2"); got != 200 {
		t.Errorf("take of another client: status %d, want 200", got)
	}
}

func TestReload_BrokenFileKeepsThePolicy(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.Policy = policyFile(t, burst("1"))
	s := start(t, c)
	if got := s.take("192.0.2.1"); got != 200 {
		t.Fatalf("first take: status %d, want 200", got)
	}
	for i, broken := range []string{"", "rules: [", burst("1")[:40], burst("-1"), "\x00\x01", "- a\n- b\n"} {
		write(t, c.Policy, broken)
		testkit.Until(t, "the broken file is noticed", func() bool { return s.log.Count("policy invalid") == i+1 })
		if got := s.take("192.0.2.1"); got != 429 {
			t.Errorf("take under broken file %q: status %d, want 429 by the old policy", broken, got)
		}
		if status, _ := get(t, s.admin+"/readyz"); status != 200 {
			t.Errorf("/readyz under broken file %q: status %d, want 200", broken, status)
		}
	}
	mistakes := s.log.Count("policy error")

	if err := os.Remove(c.Policy); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "the missing file is noticed", func() bool { return s.log.Count("cannot read policy") == 1 })
	write(t, c.Policy, burst("2"))
	testkit.Until(t, "the good file is loaded", func() bool { return s.log.Count("policy reloaded") == 1 })
	if got := s.take("192.0.2.1"); got != 200 {
		t.Errorf("take under the good file: status %d, want 200", got)
	}
	if got := s.log.Count("policy error"); got != mistakes || s.log.Count("cannot read policy") != 1 {
		t.Errorf("%d mistakes logged, then %d: a broken file must be logged once", mistakes, got)
	}
}

func TestReload_UnreadableFileKeepsThePolicy(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.Policy = policyFile(t, burst("1"))
	s := start(t, c)
	if got := s.take("192.0.2.1"); got != 200 {
		t.Fatalf("first take: status %d, want 200", got)
	}
	write(t, c.Policy, "# "+strings.Repeat("x", policyyaml.MaxBytes))
	testkit.Until(t, "the huge file is refused", func() bool { return s.log.Count("cannot read policy") == 1 })
	if err := os.Remove(c.Policy); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(c.Policy, 0o700); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "the directory is refused", func() bool { return s.log.Count("is a directory") == 1 })
	if got := s.take("192.0.2.1"); got != 429 {
		t.Errorf("take without a file: status %d, want 429 by the old policy", got)
	}
	if err := os.Remove(c.Policy); err != nil {
		t.Fatal(err)
	}
	write(t, c.Policy, burst("1"))
	testkit.Until(t, "the file is back", func() bool { return s.log.Count("policy file readable again, unchanged") == 1 })
	if n := s.log.Count("policy reloaded"); n != 0 {
		t.Errorf("reloaded %d times, want 0: the contents are the old ones", n)
	}
}

func TestReload_FollowsASwappedSymlink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, version := range []string{"1", "2"} {
		if err := os.Mkdir(filepath.Join(dir, version), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, version, "policy.yaml"), burst(version))
	}
	link := func(version string) {
		t.Helper()
		next := filepath.Join(dir, "next")
		if err := os.Symlink(version, next); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, filepath.Join(dir, "current")); err != nil {
			t.Fatal(err)
		}
	}
	link("1")
	c := testConfig()
	c.Policy = filepath.Join(dir, "current", "policy.yaml")
	s := start(t, c)
	link("2")
	testkit.Until(t, "the swapped directory is read", func() bool { return s.log.Count("policy reloaded") == 1 })
	for i, want := range []int{200, 200, 429} {
		if got := s.take("192.0.2.1"); got != want {
			t.Errorf("take %d: status %d, want %d", i, got, want)
		}
	}
}

func TestReload_SameSizeAndTime(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.Policy = policyFile(t, burst("1"))
	info, err := os.Stat(c.Policy)
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, c)
	f, err := os.OpenFile(c.Policy, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte(burst("3")), 0); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(c.Policy, time.Time{}, info.ModTime()); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "a change within one tick of the clock is seen", func() bool { return s.log.Count("policy reloaded") == 1 })
}

func TestReload_ByHand(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.ReloadInterval = 0
	c.Policy = policyFile(t, burst("1"))
	s := start(t, c)
	s.server.Reload()
	testkit.Until(t, "an unchanged file is reloaded when asked", func() bool { return s.log.Count("policy reloaded") == 1 })
	write(t, c.Policy, "")
	s.server.Reload()
	testkit.Until(t, "mistakes are logged", func() bool { return s.log.Count("policy invalid") == 1 })
	s.server.Reload()
	testkit.Until(t, "and again when asked again", func() bool { return s.log.Count("policy invalid") == 2 })
}

func TestReload_ExampleHasNoFile(t *testing.T) {
	t.Parallel()
	s := start(t, testConfig())
	s.server.Reload()
	testkit.Until(t, "the log says so", func() bool { return s.log.Count("nothing to reload") == 1 })
}

// TestReload_WhileServing reloads a hundred times under requests: each is
// decided by one policy, and none is lost.
func TestReload_WhileServing(t *testing.T) {
	t.Parallel()
	const clients, capacity = 4, 1000
	c := testConfig()
	c.ReloadInterval = 0
	c.Policy = policyFile(t, burst(strconv.Itoa(capacity)))
	s := start(t, c)

	stop := make(chan struct{})
	var serving sync.WaitGroup
	counts := make([]map[int]int, clients)
	for i := range clients {
		counts[i] = map[int]int{}
		serving.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					counts[i][s.take("192.0.2.1")]++
				}
			}
		})
	}
	for i := range 100 {
		write(t, c.Policy, burst(strconv.Itoa(capacity))+"# "+strconv.Itoa(i)+"\n")
		s.server.Reload()
		testkit.Until(t, "the reload", func() bool { return s.log.Count("policy reloaded") > i })
	}
	close(stop)
	serving.Wait()
	total := map[int]int{}
	for _, m := range counts {
		for status, n := range m {
			total[status] += n
		}
	}
	asked := total[http.StatusOK] + total[http.StatusTooManyRequests]
	if len(total) > 2 || total[http.StatusOK] != min(asked, capacity) {
		t.Errorf("answers by status: %v; want 200 for the first %d, 429 for the rest, and nothing else", total, capacity)
	}
	t.Logf("answers by status: %v", total)
}

// A server that shuts down no longer reloads its policy, and rejects reload requests immediately.
func TestReload_WhileEnding(t *testing.T) {
	t.Parallel()
	u := newHeldUpstream(t)
	c := testConfig()
	c.Upstream, c.Policy, c.ReloadInterval = mustURL(u.URL), policyFile(t, burst("9")), 0
	s := start(t, c)
	slow := ask(s.main + "/slow")
	<-u.arrived
	if status, body := post(t, s.admin+"/v1/reload", nil); status != 200 {
		t.Errorf("before: %d %s, want 200", status, body)
	}
	s.stop()
	testkit.Until(t, "it is ending", func() bool {
		status, _ := get(t, s.admin+"/readyz")
		return status == 503
	})
	for range 3 { // one of which finds room for its wish
		if status, body := post(t, s.admin+"/v1/reload", nil); status != 503 {
			t.Errorf("while it ends: %d %s, want 503", status, body)
		}
	}
	close(u.release)
	if got := <-slow; got.status != 200 {
		t.Errorf("what was in flight: %+v, want 200", got)
	}
}
