// SPDX-License-Identifier: Apache-2.0

package soak_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	settling = 2 * time.Second // how long a quiet moment lasts

	// slack is the allowed growth of goroutines or files between the first and the last quiet moment.
	// Connections to Redis open on demand. A leak of a client, a reload or an outage exceeds it.
	slack = 20

	// heapShare and heapSlack are how much of the live heap at the beginning may be
	// added in the end: tables of bounded size fill up.
	heapShare = 0.25
	heapSlack = 4 << 20
)

// vitals are the resources that an idle process holds.
type vitals struct {
	at                time.Duration // since the beginning of the soak
	goroutines, files int
	resident          int64 // bytes
}

// metrics are the samples that a server shows, by name and labels as they are
// written. There are none where it does not answer.
func (w *world) metrics(s *server) map[string]float64 {
	a := answer{}
	resp, err := asker.Get(s.AdminURL + "/metrics")
	if err == nil {
		defer resp.Body.Close()
		var b bytes.Buffer
		_, err = b.ReadFrom(resp.Body)
		a.status, a.body = resp.StatusCode, b.Bytes()
	}
	if err != nil || a.status != http.StatusOK {
		if !w.leaving.Load() {
			w.wrongs.add("%s: /metrics: status %d, %v", s.name, a.status, err)
		}
		return nil
	}
	samples := map[string]float64{}
	for lines := bufio.NewScanner(bytes.NewReader(a.body)); lines.Scan(); {
		name, text, ok := cutLast(lines.Text(), " ")
		if value, err := strconv.ParseFloat(text, 64); ok && err == nil {
			samples[name] = value
		}
	}
	return samples
}

func cutLast(text, sep string) (before, after string, found bool) {
	i := strings.LastIndex(text, sep)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(sep):], true
}

// quietPeriodically has a quiet moment after the warm-up, and then at intervals.
func (w *world) quietPeriodically(ctx context.Context) {
	if !pause(ctx, w.schedule.warmup) {
		return
	}
	w.quiet()
	every(ctx, w.schedule.quiet, w.quiet)
}

// quiet stops all clients for a moment, closes idle connections and records the vitals.
func (w *world) quiet() {
	w.gate.Lock()
	defer w.gate.Unlock()
	connections.CloseIdleConnections()
	w.upstream.CloseClientConnections()
	var looking sync.WaitGroup
	for _, s := range w.servers() {
		looking.Go(func() { s.vitals = append(s.vitals, w.leastVitals(s)) })
	}
	looking.Wait()
}

// leastVitals watches a server for a while, and returns the least that it held.
func (w *world) leastVitals(s *server) vitals {
	v := vitals{at: w.schedule.since()}
	for range 10 {
		pause(context.Background(), settling/10)
		n := int(w.metrics(s)["go_goroutines"])
		if v.goroutines == 0 || n < v.goroutines {
			v.goroutines = n
		}
	}
	v.files, v.resident = held(s)
	return v
}

// held is how many files a server has open, and its resident memory.
func held(s *server) (files int, resident int64) {
	proc := fmt.Sprintf("/proc/%d/", s.Process.Pid())
	if entries, err := os.ReadDir(proc + "fd"); err == nil {
		files = len(entries)
	}
	text, err := os.ReadFile(proc + "statm")
	if fields := strings.Fields(string(text)); err == nil && len(fields) > 1 {
		pages, _ := strconv.ParseInt(fields[1], 10, 64)
		resident = pages * int64(os.Getpagesize())
	}
	return files, resident
}

// watchHeap samples the heaps. The least of many samples is the live heap after a collection.
func (w *world) watchHeap(ctx context.Context) {
	every(ctx, time.Second, func() {
		for _, s := range w.servers() {
			if bytes := w.metrics(s)["go_memstats_heap_alloc_bytes"]; bytes > 0 {
				s.heap = append(s.heap, bytes)
			}
		}
	})
}

// checkVitals compares the last quiet moment with the first.
func (s *server) checkVitals(w *failures) {
	if len(s.vitals) < 2 {
		w.add("%s: %d quiet moments, want two to compare", s.name, len(s.vitals))
		return
	}
	first, last := s.vitals[0], s.vitals[len(s.vitals)-1]
	if first.goroutines == 0 || first.files == 0 {
		w.add("%s: its goroutines and files are not known: %+v", s.name, first)
	}
	if last.goroutines > first.goroutines+slack {
		w.add("%s leaks goroutines: %d at first, %d in the end", s.name, first.goroutines, last.goroutines)
	}
	if last.files > first.files+slack {
		w.add("%s leaks files: %d open at first, %d in the end", s.name, first.files, last.files)
	}
}

// heapTenths are the least samples of each tenth of the soak.
func (s *server) heapTenths() (least [10]float64) {
	for i := range least {
		part := s.heap[len(s.heap)*i/10 : len(s.heap)*(i+1)/10]
		if len(part) > 0 {
			least[i] = slices.Min(part)
		}
	}
	return least
}

// checkHeap compares the last three tenths with the second to the fourth.
func (s *server) checkHeap(w *failures) {
	if len(s.heap) < 10 {
		w.add("%s: %d samples of its heap, want ten", s.name, len(s.heap))
		return
	}
	tenths := s.heapTenths()
	first, last := slices.Max(tenths[1:4]), slices.Min(tenths[7:])
	if last > first*(1+heapShare)+heapSlack {
		w.add("the heap of %s grows: at least %.1f MB at first, %.1f MB in the end; by tenths of the time: %s", s.name, first/1e6, last/1e6, inMB(tenths[:]))
	}
}

func inMB(bytes []float64) string {
	var parts []string
	for _, b := range bytes {
		parts = append(parts, fmt.Sprintf("%.1f", b/1e6))
	}
	return strings.Join(parts, " ")
}

// summary returns a table of a server's observations.
func (s *server) summary() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%10s %10s %6s %12s\n", s.name, "at", "goroutines", "files", "resident MB")
	for _, v := range s.vitals {
		fmt.Fprintf(&b, "%10s %10d %6d %12.1f\n", v.at.Round(time.Second), v.goroutines, v.files, float64(v.resident)/1e6)
	}
	if len(s.heap) >= 10 {
		tenths := s.heapTenths()
		fmt.Fprintf(&b, "live heap in MB, by tenths of the time: %s\n", inMB(tenths[:]))
	}
	return b.String()
}

// tell reports at intervals.
func (w *world) tell(ctx context.Context) {
	every(ctx, reportEvery, func() {
		var heaps []string
		for _, s := range w.servers() {
			m := w.metrics(s)
			heaps = append(heaps, fmt.Sprintf("%s %.0f goroutines %.1f MB", s.name, m["go_goroutines"], m["go_memstats_heap_alloc_bytes"]/1e6))
		}
		w.t.Logf("%s: %s; %s; %d wrongs", w.schedule.since().Round(time.Second), w.tally.String(), strings.Join(heaps, ", "), len(w.wrongs.list()))
	})
}
