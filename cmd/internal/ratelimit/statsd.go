// SPDX-License-Identifier: Apache-2.0

package ratelimit

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/metehq/mete/envoyapi/dropin"
	"github.com/metehq/mete/internal/follow"
)

// statsdTimeout bounds one connection to the StatsD server.
const statsdTimeout = 5 * time.Second

// A statsdSender sends the increments of counters to a StatsD server, over TCP as the original does.
type statsdSender struct {
	addr     string
	interval time.Duration
	counters func() []dropin.Counter
	log      *slog.Logger
	sent     map[string]uint64
}

func newStatsdSender(s *Settings, counters func() []dropin.Counter, log *slog.Logger) *statsdSender {
	addr := net.JoinHostPort(s.StatsdHost, strconv.Itoa(s.StatsdPort))
	return &statsdSender{addr: addr, interval: s.FlushInterval, counters: counters, log: log, sent: map[string]uint64{}}
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
	var lines bytes.Buffer
	for _, c := range counters {
		if grown := c.Value - s.sent[c.Name]; grown > 0 {
			fmt.Fprintf(&lines, "%s:%d|c\n", c.Name, grown)
		}
	}
	if lines.Len() == 0 {
		return nil
	}
	conn, err := net.DialTimeout("tcp", s.addr, statsdTimeout)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(statsdTimeout)); err != nil {
		return err
	}
	if _, err := conn.Write(lines.Bytes()); err != nil {
		return err
	}
	for _, c := range counters {
		s.sent[c.Name] = c.Value
	}
	return nil
}
