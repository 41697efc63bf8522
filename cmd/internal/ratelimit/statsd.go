// SPDX-License-Identifier: Apache-2.0

package ratelimit

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/metehq/mete/envoyapi/dropin"
	"github.com/metehq/mete/internal/follow"
)

const (
	// statsdTimeout bounds one connection to the StatsD server.
	statsdTimeout = 5 * time.Second

	// maxDatagram bounds the bytes of a datagram, which then fits into one packet of an Ethernet with IPv6.
	maxDatagram = 1432
)

// A statsdSender sends the increments of counters to a StatsD server.
type statsdSender struct {
	network  string // tcp or udp
	addr     string
	interval time.Duration
	counters func() []dropin.Counter
	log      *slog.Logger
	sent     map[string]uint64
}

func newStatsdSender(s *Settings, counters func() []dropin.Counter, log *slog.Logger) *statsdSender {
	addr := net.JoinHostPort(s.StatsdHost, strconv.Itoa(s.StatsdPort))
	return &statsdSender{network: s.StatsdProtocol, addr: addr, interval: s.FlushInterval, counters: counters, log: log, sent: map[string]uint64{}}
}

// run sends at each interval until ctx ends, and one last time then.
func (s *statsdSender) run(ctx context.Context) {
	loop := follow.Loop{
		Interval: s.interval,
		Read:     func(context.Context, bool) (bool, error) { return false, s.send() },
		Report: func(news follow.News, err error) {
			if news == follow.NewsFailed {
				s.log.Error("StatsD server unreachable, counters are sent later", "addr", s.addr, "err", err)
				return
			}
			s.log.Info("StatsD server reachable again", "addr", s.addr)
		},
	}
	loop.Run(ctx)
	_ = s.send() // the process ends, and the next one counts from 0
}

func (s *statsdSender) send() error {
	counters := s.counters()
	var lines []string
	for _, c := range counters {
		if grown := c.Value - s.sent[c.Name]; grown > 0 {
			lines = append(lines, fmt.Sprintf("%s:%d|c\n", c.Name, grown))
		}
	}
	if len(lines) == 0 {
		return nil
	}
	conn, err := net.DialTimeout(s.network, s.addr, statsdTimeout)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(statsdTimeout)); err != nil {
		return err
	}
	for _, part := range s.join(lines) {
		if _, err := conn.Write(part); err != nil {
			return err
		}
	}
	for _, c := range counters {
		s.sent[c.Name] = c.Value
	}
	return nil
}

// join returns the lines as datagrams, or as one part for TCP. A line is never split.
func (s *statsdSender) join(lines []string) (parts [][]byte) {
	var part []byte
	for _, line := range lines {
		if s.network == "udp" && len(part) > 0 && len(part)+len(line) > maxDatagram {
			parts, part = append(parts, part), nil
		}
		part = append(part, line...)
	}
	return append(parts, part)
}
