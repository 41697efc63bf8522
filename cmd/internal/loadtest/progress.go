// SPDX-License-Identifier: Apache-2.0

package loadtest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/metehq/mete/internal/follow"
	"github.com/metehq/mete/internal/prose"
)

const (
	progressEvery = 200 * time.Millisecond
	barWidth      = 24
)

// show draws the progress until ctx ends or the caller calls stop, which removes it.
func (l *load) show(ctx context.Context) (stop func()) {
	if l.options.Progress == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		follow.Every(ctx, progressEvery, func() {
			fmt.Fprint(l.options.Progress, "\r\x1b[K"+l.progress(time.Since(l.start)))
		})
	}()
	return func() {
		cancel()
		<-ended
		fmt.Fprint(l.options.Progress, "\r\x1b[K")
	}
}

func (l *load) progress(elapsed time.Duration) string {
	done := 0.0
	if l.options.Duration > 0 {
		done = elapsed.Seconds() / l.options.Duration.Seconds()
	}
	ended, failed := l.ended.Load(), l.failed.Load()
	if l.options.Count > 0 {
		done = max(done, float64(ended)/float64(l.options.Count))
	}
	full := int(min(done, 1) * barWidth)
	s := fmt.Sprintf("[%s%s] %s, %.0f per second", strings.Repeat("█", full), strings.Repeat(" ", barWidth-full),
		prose.Count(ended, "decision"), float64(ended)/elapsed.Seconds())
	if failed > 0 {
		s += ", " + prose.Count(failed, "error")
	}
	return s
}
