// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"sync"
	"time"
)

// A Loop polls a file or a URL, and reports each change and each problem once.
type Loop struct {
	// Interval is the time between polls. If it is 0, only [Loop.Force] polls.
	Interval time.Duration

	// Retry is the delay after a failed poll. It doubles after each failure, up to Interval. 0 means Interval.
	Retry time.Duration

	// Wanted triggers a poll, but not sooner than MinInterval after the previous one.
	Wanted      <-chan struct{}
	MinInterval time.Duration

	// Read reads the contents, and activates and reports new ones. The same problem must have the same error text
	// at each poll. If forced, Read also reads contents that seem unchanged. Calls do not overlap.
	Read func(ctx context.Context, forced bool) (changed bool, err error)

	// Report receives the result and the error of each poll, except for [NewsNone]. A forced poll reports
	// [NewsFailed] or [NewsChanged].
	Report func(News, error)

	mu     sync.Mutex // held during a poll; protects memory
	memory Memory
}

// Begin records the error of a read before the loop starts.
func (l *Loop) Begin(err error) { l.memory.Note(false, err) }

// Force polls immediately and returns the error.
func (l *Loop) Force(ctx context.Context) error {
	_, err := l.look(ctx, true)
	return err
}

// Run polls until ctx ends.
func (l *Loop) Run(ctx context.Context) {
	if l.Interval <= 0 {
		<-ctx.Done()
		return
	}
	retry, last, failing := time.Duration(0), time.Now(), l.failing()
	wait := func() time.Duration {
		if !failing || l.Retry == 0 {
			retry = 0
			return l.Interval
		}
		retry = min(max(l.Retry, 2*retry), l.Interval)
		return retry
	}
	next := time.NewTimer(wait())
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.Wanted:
			if early := time.Until(last.Add(l.MinInterval)); early > 0 {
				if l.MinInterval < l.Interval && !failing {
					next.Reset(early)
				}
				continue
			}
		case <-next.C:
		}
		failing, _ = l.look(ctx, false)
		last = time.Now()
		next.Reset(wait())
	}
}

func (l *Loop) failing() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.memory.Failing()
}

// look polls once and reports the result. It ignores a poll that ctx interrupts.
func (l *Loop) look(ctx context.Context, forced bool) (failing bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	changed, err := l.Read(ctx, forced)
	if ctx.Err() != nil {
		return l.memory.Failing(), err
	}
	news := l.memory.Note(changed, err)
	if forced {
		news = NewsChanged
		if err != nil {
			news = NewsFailed
		}
	}
	if news != NewsNone {
		l.Report(news, err)
	}
	return err != nil, err
}
