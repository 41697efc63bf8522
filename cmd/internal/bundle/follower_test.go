// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A new bundle is applied once, and an unchanged one costs an answer without contents.
func TestPoll(t *testing.T) {
	for _, tags := range []bool{true, false} {
		t.Run(fmt.Sprint("ETags ", tags), func(t *testing.T) {
			src := newSource(t, bundleOf(1, 5))
			src.tags = tags
			s := newServer(t, src.config(t, t.TempDir()))
			s.load(1)
			src.requests()
			s.poll(1, "")
			if got, want := src.requests(), "/policy.yaml?"; tags && got != want {
				t.Errorf("asked %q of an unchanged bundle, want %q", got, want)
			}
			src.put(bundleOf(2, 6))
			s.poll(2, "")
			s.poll(2, "")
			if !slices.Equal(s.applied, []int64{2}) || !slices.Equal(s.told, []string{"ok"}) {
				t.Errorf("applied %v, told %v; want version 2 once", s.applied, s.told)
			}
			if got := s.Status(); got.Applied != 2 || got.Unchanged != 2 || got.Failures != 0 || got.Digest != digestOf([]byte(bundleOf(2, 6))) || got.FromDisk {
				t.Errorf("status %+v", got)
			}
			if s.log.Count("policy bundle applied") != 1 || s.log.Count("level=ERROR") != 0 {
				t.Errorf("log:\n%s", s.log)
			}
		})
	}
}

// Nothing that is broken, older or unsigned replaces the good bundle, on disk neither.
func TestPoll_Refused(t *testing.T) {
	dir := t.TempDir()
	src := newSource(t, bundleOf(5, 5))
	s := newServer(t, src.config(t, dir))
	s.load(5)
	good, err := os.ReadFile(filepath.Join(dir, StateName))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		change func()
		want   string
	}{
		{"older", func() { src.put(bundleOf(4, 9)) }, "it is 4, and 5 is active"},
		{"the same version", func() { src.put(bundleOf(5, 9)) }, "5 is active with other contents"},
		{"no version", func() { src.put(strings.Replace(bundleOf(6, 9), "bundle_version: 6\n", "", 1)) }, "the bundle has none"},
		{"broken", func() { src.put("bundle_version: 6\npolicies: [{id: main, spec: {rules: [{name: x}]}}]\n") }, "limit_keys"},
		{"other contents than signed", func() { src.put(bundleOf(6, 9)); src.set(func() { src.text += "#" }) }, "no valid signature"},
		{"no signature", func() { src.put(bundleOf(6, 9)); src.set(func() { src.signature = nil }) }, "no valid signature"},
		{"a signature by another key", func() {
			src.put(bundleOf(6, 9))
			other := newSource(t, bundleOf(6, 9))
			src.set(func() { src.signature = other.signature })
		}, "no valid signature"},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.change()
			before, told := s.Status().Refused, len(s.told)
			s.poll(5, test.want)
			if got := s.Status().Refused; got != before+1 || len(s.told) != told+1 || s.told[told] != "refused" {
				t.Errorf("%d bundles were refused, want %d; told %v", got, before+1, s.told)
			}
			errorsBefore := s.log.Count("level=ERROR")
			if errorsBefore == 0 {
				t.Error("the log has no error")
			}
			s.poll(5, test.want)
			if got := s.log.Count("level=ERROR"); got != errorsBefore {
				t.Errorf("the same refusal is logged again:\n%s", s.log)
			}
			if now, err := os.ReadFile(filepath.Join(dir, StateName)); err != nil || string(now) != string(good) {
				t.Errorf("the file of the last good bundle has changed: %v", err)
			}
			src.put(bundleOf(5, 5)) // as it was
			s.poll(5, "")
		})
	}
	s.failing = errors.New("the limiter refuses it")
	src.put(bundleOf(6, 9))
	s.poll(5, "the limiter refuses it")
	s.failing = nil
	if err := s.Poll(t.Context(), s.apply, true); err != nil || s.Status().Version != 6 {
		t.Errorf("asked to try again: %v, version %d", err, s.Status().Version)
	}
}

// A bundle that is replaced between the requests for it and for its signature is read again.
func TestPoll_ReplacedBetweenRequests(t *testing.T) {
	src := newSource(t, bundleOf(1, 5))
	s := newServer(t, src.config(t, t.TempDir()))
	s.load(1)
	src.put(bundleOf(2, 5))
	once := false
	src.set(func() {
		src.handle = func(_ http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, ".sig") && !once {
				once = true
				src.mu.Unlock()
				src.put(bundleOf(3, 5))
				src.mu.Lock()
			}
			return false
		}
	})
	s.poll(3, "")
	if s.log.Count("level=ERROR") != 0 {
		t.Errorf("log:\n%s", s.log)
	}
}

// A restart begins with the last good bundle while the source is down, and stays ahead of older ones.
func TestLoad_FromDisk(t *testing.T) {
	dir := t.TempDir()
	src := newSource(t, bundleOf(7, 5))
	c := src.config(t, dir)
	newServer(t, c).load(7)
	info, err := os.Stat(filepath.Join(dir, StateName))
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("the file has the mode %v, want 0600", info.Mode())
	}
	for _, test := range []struct {
		name   string
		change func()
	}{
		{"down", func() { src.set(func() { src.status = http.StatusServiceUnavailable }) }},
		{"an older bundle", func() { src.put(bundleOf(6, 5)) }},
		{"a broken bundle", func() { src.put("bundle_version: 9\npolicies: 5\n") }},
		{"no signature", func() { src.put(bundleOf(9, 5)); src.set(func() { src.signature = nil }) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			src.set(func() { src.status = 0 })
			test.change()
			s := newServer(t, c)
			s.load(7)
			if got := s.Status(); !got.FromDisk || got.Failures != 1 || s.log.Count("policy bundle loaded from disk") != 1 {
				t.Errorf("status %+v, log:\n%s", got, s.log)
			}
		})
	}
	src.set(func() { src.status = 0 })
	src.put(bundleOf(7, 5))
	s := newServer(t, c)
	src.requests()
	s.load(7)
	if got := src.requests(); got != "/policy.yaml?" || s.Status().FromDisk {
		t.Errorf("asked %q with the same bundle on disk, status %+v", got, s.Status())
	}
	s = newServer(t, c)
	src.put(bundleOf(8, 5))
	s.load(8)
}

// A file that somebody changed is not trusted, and without it a server needs the source.
func TestLoad_BadFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, StateName)
	src := newSource(t, bundleOf(7, 5))
	c := src.config(t, dir)
	newServer(t, c).load(7)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	src.set(func() { src.status = http.StatusNotFound })
	for name, text := range map[string]string{
		"cut off": string(good[:len(good)/2]), "empty": "", "no bundle": `{}`, "unsigned": strings.Replace(string(good), `"signature":"`, `"signature":"AAAA`, 1),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := newServer(t, c)
		if m, err := s.Load(t.Context()); err == nil || !strings.Contains(err.Error(), "status 404") {
			t.Errorf("%s: %v, %v, want the error of the source", name, m, err)
		}
	}
	if err := os.WriteFile(path, good, 0o600); err != nil {
		t.Fatal(err)
	}
	newServer(t, c).load(7)
	moved := newSource(t, bundleOf(1, 5))
	elsewhere := moved.config(t, dir)
	elsewhere.Keys = append(elsewhere.Keys, c.Keys...)
	newServer(t, elsewhere).load(1) // the file is of another source
}

// A failure of the source is logged once, and its end, too.
func TestPoll_SourceDown(t *testing.T) {
	src := newSource(t, bundleOf(1, 5))
	s := newServer(t, src.config(t, t.TempDir()))
	s.load(1)
	confirmed := s.Status().Confirmed
	src.set(func() { src.status = http.StatusInternalServerError })
	for range 3 {
		s.poll(1, "status 500")
	}
	if got := s.Status(); got.Failures != 3 || got.Failed != 3 || !got.Confirmed.Equal(confirmed) || len(s.told) != 0 {
		t.Errorf("status %+v, told %v", got, s.told)
	}
	src.set(func() { src.status = 0 })
	s.poll(1, "")
	if got := s.Status(); got.Failures != 0 || !got.Confirmed.After(confirmed) {
		t.Errorf("status %+v", got)
	}
	if s.log.Count("source unreachable") != 1 || s.log.Count("source reachable") != 1 {
		t.Errorf("log:\n%s", s.log)
	}
}

// The wait grows with failures, up to a bound, and servers of a fleet wait differently.
func TestFollower_Wait(t *testing.T) {
	f := &Follower{config: Config{Interval: 10 * time.Second}}
	for _, test := range []struct {
		failures    int
		least, most time.Duration
	}{
		{0, 9 * time.Second, 11 * time.Second},
		{1, 10 * time.Second, 20 * time.Second},
		{2, 10 * time.Second, 30 * time.Second},
		{4, 10 * time.Second, 90 * time.Second},
		{6, 10 * time.Second, 10*time.Second + maxBackoff},
		{1000, 10 * time.Second, 10*time.Second + maxBackoff},
	} {
		f.status.Failures = test.failures
		least, most := f.wait(func() float64 { return 0 }), f.wait(func() float64 { return 1 })
		if least != test.least || most != test.most {
			t.Errorf("after %d failures: %v to %v, want %v to %v", test.failures, least, most, test.least, test.most)
		}
	}
}

// Follow polls at the interval, at once when asked, and not at all without an interval.
func TestFollow(t *testing.T) {
	for _, interval := range []time.Duration{10 * time.Second, 0} {
		synctest.Test(t, func(t *testing.T) {
			polls := 0
			src := &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
				polls++
				return &http.Response{StatusCode: http.StatusNotModified, Body: http.NoBody, Header: http.Header{}}, nil
			})}
			u, err := ParseURL("https://policies.example.com/policy.yaml")
			if err != nil {
				t.Fatal(err)
			}
			f := &Follower{config: Config{Interval: interval}, fetcher: &fetcher{url: u, client: src}, tag: `"t"`, active: &savedBundle{}}
			asked, ended := make(chan Request), make(chan struct{})
			begin := time.Now()
			go func() {
				f.Follow(t.Context(), nil, asked)
				close(ended)
			}()
			time.Sleep(5*time.Minute + time.Second) // of the virtual clock
			synctest.Wait()
			if least, most := 27, 34; interval > 0 && (polls < least || polls > most) || interval == 0 && polls != 0 {
				t.Errorf("interval %v: %d polls in 5 minutes", interval, polls)
			}
			before, done := polls, make(chan error, 1)
			asked <- Request{done}
			if err := <-done; err != nil || polls != before+1 {
				t.Errorf("asked to poll: %v, %d polls more", err, polls-before)
			}
			if got := f.Status().Confirmed; got.Before(begin) {
				t.Errorf("confirmed at %v, before the test", got)
			}
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A source without ETags sends a refused bundle again with each poll. It is reported once.
func TestFollower_RefusedWithoutTags(t *testing.T) {
	src := newSource(t, bundleOf(2, 5))
	src.tags = false
	s := newServer(t, src.config(t, t.TempDir()))
	s.load(2)
	src.put(bundleOf(1, 5))
	for range 3 {
		s.poll(2, "bundle_version must increase")
	}
	if n := s.log.Count("policy bundle rejected"); n != 1 || len(s.told) != 1 || s.Status().Refused != 1 {
		t.Errorf("reported %d times, told %v, status %+v", n, s.told, s.Status())
	}
	if err := s.Poll(t.Context(), s.apply, true); err == nil || s.log.Count("policy bundle rejected") != 2 {
		t.Errorf("asked by an administrator: %v\n%s", err, s.log)
	}
	src.put(bundleOf(3, 5))
	s.poll(3, "")
}
