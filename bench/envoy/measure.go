// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/metehq/mete/bench/daemon"
	"github.com/metehq/mete/bench/report"
)

const (
	// connections carry the calls of all callers, as the workers of one Envoy would.
	connections = 4

	// addresses is the number of different descriptors.
	addresses = 10_000

	// warmUp precedes every measurement.
	warmUp = 300 * time.Millisecond
)

type results []*server

// measure calls the servers in turn in each round.
func measure(ctx context.Context, o options, progress io.Writer) (results, error) {
	f, err := startField(ctx, o)
	if err != nil {
		return nil, err
	}
	defer f.stop()
	for round := range o.rounds {
		echoRate := 0.0
		for _, s := range f.servers {
			if _, err := call(ctx, s, o.callers, warmUp); err != nil {
				return nil, err
			}
			cpu, store := daemon.CPU(s.process.Pid), daemon.CPU(f.store.Pid)
			latencies, err := call(ctx, s, o.callers, o.time)
			if err != nil {
				return nil, err
			}
			s.cpu = append(s.cpu, microseconds(daemon.CPU(s.process.Pid)-cpu, latencies.Total()))
			s.store = append(s.store, microseconds(daemon.CPU(f.store.Pid)-store, latencies.Total()))
			rate := float64(latencies.Total()) / o.time.Seconds()
			if s.name == echoName {
				echoRate = rate
			}
			s.rates = append(s.rates, rate)
			s.bare = append(s.bare, rate/echoRate)
			s.latency = fmt.Sprintf("%v / %v", latencies.Percentile(0.5).Round(10*time.Microsecond), latencies.Percentile(0.99).Round(10*time.Microsecond))
			fmt.Fprintf(progress, "round %d: %s: %.0f calls/s\n", round+1, s.name, rate)
		}
	}
	return f.servers, nil
}

// call sends calls from all callers for a time, and returns their latencies. Every call must be allowed.
func call(ctx context.Context, s *server, callers int, d time.Duration) (*report.Histogram, error) {
	ctx, cancel := context.WithTimeout(ctx, d+time.Minute)
	defer cancel()
	var clients []ratelimitv3.RateLimitServiceClient
	for range connections {
		conn, err := grpc.NewClient(s.addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		clients = append(clients, ratelimitv3.NewRateLimitServiceClient(conn))
	}
	var mu sync.Mutex
	var all report.Histogram
	var failed error
	var wg sync.WaitGroup
	end := time.Now().Add(d)
	for i := range callers {
		wg.Go(func() {
			latencies, err := callUntil(ctx, clients[i%connections], end)
			mu.Lock()
			defer mu.Unlock()
			all.Merge(latencies)
			if err != nil {
				failed = fmt.Errorf("%s: %w", s.name, err)
			}
		})
	}
	wg.Wait()
	return &all, failed
}

func callUntil(ctx context.Context, c ratelimitv3.RateLimitServiceClient, end time.Time) (*report.Histogram, error) {
	var latencies report.Histogram
	for start := time.Now(); start.Before(end); {
		resp, err := c.ShouldRateLimit(ctx, newRequest())
		if err != nil {
			return &latencies, err
		}
		if resp.OverallCode != ratelimitv3.RateLimitResponse_OK || len(resp.Statuses) != 1 {
			return &latencies, fmt.Errorf("answer %v: want one status that allows", resp)
		}
		now := time.Now()
		latencies.Add(now.Sub(start))
		start = now
	}
	return &latencies, nil
}

func newRequest() *ratelimitv3.RateLimitRequest {
	return &ratelimitv3.RateLimitRequest{
		Domain: domain,
		Descriptors: []*commonv3.RateLimitDescriptor{{
			Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: "remote_address", Value: "10.0.0." + strconv.Itoa(rand.IntN(addresses))}},
		}},
	}
}

// table has one row per server.
func (r results) table() *report.Table {
	t := &report.Table{}
	t.Add("Server", "calls/s", "÷ echo", "÷ "+originalName, "server µs/call", "Redis µs/call", "p50 / p99")
	original := slices.IndexFunc(r, func(s *server) bool { return s.name == originalName })
	for _, s := range r {
		ratio := ""
		if original >= 0 {
			var pairs []float64
			for i, rate := range s.rates {
				pairs = append(pairs, rate/r[original].rates[i])
			}
			ratio = fmt.Sprintf("%.2f", median(pairs))
		}
		t.Add(s.name, fmt.Sprintf("%.0f", median(s.rates)), fmt.Sprintf("%.2f", median(s.bare)), ratio,
			fmt.Sprintf("%.0f", median(s.cpu)), fmt.Sprintf("%.0f", median(s.store)), s.latency)
	}
	return t
}

func microseconds(d time.Duration, calls int64) float64 {
	return float64(d.Microseconds()) / float64(max(calls, 1))
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}
