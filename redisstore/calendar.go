// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"strconv"
	"strings"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
)

// encodeCalendars returns an argument per calendar limit: its text, the longest wait of a reservation in microseconds, and
// the starts of its windows. See package internal/calendars.
func (p *program) encodeCalendars() (args []string) {
	var reach int64
	for _, a := range p.asks {
		reach = max(reach, encodeWait(a.mode.MaxWait))
		for i, t := range a.taken {
			if i < len(a.charges) {
				l := a.limits[i]
				p.windows.AddTaken(p.texts[l].text, &p.limits[l], t.At)
			}
		}
	}
	for i := range p.limits {
		p.windows.Add(p.texts[i].text, &p.limits[i])
	}
	p.windows.Each(reach, func(name string, reach int64, starts []bucket.Instant) {
		text := append(make([]byte, 0, 160), name...)
		text = strconv.AppendInt(append(text, ' '), reach, 10)
		for _, at := range starts {
			text = strconv.AppendInt(append(text, ' '), int64(at), 10)
		}
		args = append(args, string(text))
	})
	return args
}

// needsWindows begins an answer of the script that asks for windows.
const needsWindows = "~"

// learnWindows reads such an answer.
func (p *program) learnWindows(text string) error {
	w := wordReader{strings.TrimPrefix(text, needsWindows)}
	now, ok := w.nextInt()
	p.windows.Learn(bucket.Instant(now))
	for ok && w.rest != "" {
		name := w.nextWord()
		_, calendar, _ := strings.Cut(name, "@")
		var at int64
		if at, ok = w.nextInt(); ok {
			if err := p.windows.Need(name, calendar, bucket.Instant(at)); err != nil {
				return newNotSpent(err)
			}
		}
	}
	if !ok {
		return newNotSpent(newAnswerError("invalid windows", text))
	}
	return nil
}

func newNotSpent(err error) error {
	return &mete.StoreError{Store: "redisstore", Spent: mete.NotSpent, Err: err}
}

// expectedTime returns the time that the script will probably read.
func (p *program) expectedTime() bucket.Instant {
	if p.now >= 0 {
		return bucket.Instant(p.now)
	}
	return bucket.At(time.Now())
}
