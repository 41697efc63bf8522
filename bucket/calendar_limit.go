// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"fmt"

	"github.com/metehq/mete/internal/almanac"
)

// A calendar limit is a stepped limit with [AnchorCalendar]. The part of [Limit] that holds the start of other stepped
// limits holds the number of its calendar. Its p is the mean length of a window, for display only.
//
// The instant of a state is the start of a window, or any later instant: the bucket refills at each window start
// after it.

// Calendar returns the calendar of an [AnchorCalendar] limit.
func (l Limit) Calendar() (c Calendar, ok bool) {
	if l.Anchor() != AnchorCalendar {
		return Calendar{}, false
	}
	return calendarFrom(l.almanac().Calendar), true
}

func (l *Limit) hasCalendar() bool { return l.how>>howAnchor&3 == uint64(AnchorCalendar) }

func (l *Limit) almanac() *almanac.Almanac { return almanac.At(int(l.how >> howStart)) }

// Window returns the first instant of the [AnchorCalendar] window that contains t, and of the next window. Both are t
// for other limits.
func (l *Limit) Window(t Instant) (start, end Instant) {
	if !l.hasCalendar() {
		return t, t
	}
	w := l.almanac().Around(int64(t))
	return Instant(w.Start), Instant(w.End)
}

// compileCalendar is compileStepped for [AnchorCalendar].
func (s Spec) compileCalendar() (Limit, error) {
	number, err := internCalendar(s.Calendar)
	if err != nil {
		return Limit{}, fmt.Errorf("%w: %w", ErrLimit, err)
	}
	l := Limit{capacity: s.Capacity, n: int64(s.Rate.Tokens), p: s.Rate.Per.Microseconds()}
	l.how = uint64(s.Algorithm) | uint64(s.Anchor)<<howAnchor | uint64(number)<<howStart
	s.setDebt(&l, 1)
	if s.maxDebt() == nil {
		l.debt = l.maxCalendarDebt()
	}
	return l, nil
}

// maxCalendarDebt returns the largest debt that [MaxCalendarWindows] allows.
func (l *Limit) maxCalendarDebt() Tokens {
	return max(min(maxUnits, MaxCalendarWindows*Tokens(l.n))-l.capacity, 0)
}

// checkCalendar validates the rate and the amounts of an [AnchorCalendar] limit.
func (s Spec) checkCalendar(refuse func(string, ...any) error) error {
	if s.Anchor != AnchorCalendar {
		if s.Calendar != (Calendar{}) {
			return refuse("a calendar requires the anchor calendar")
		}
		return nil
	}
	if err := s.Calendar.Check(); err != nil {
		return refuse("%w", err)
	}
	if length := s.Calendar.Window.Length(); s.Rate.Per != length {
		return refuse("a rate per %v: a %v requires a rate per %v", s.Rate.Per, s.Calendar.Window, length)
	}
	amount, name := s.Capacity, "capacity"
	if most := s.maxDebt(); most != nil && *most > 0 {
		amount, name = amount+*most, "capacity plus max reserved of"
		if s.Queue > 0 {
			name = "capacity plus queue of"
		}
	}
	if most := MaxCalendarWindows * s.Rate.Tokens; amount > most {
		return refuse("%s %v: must be at most %v, the tokens of %d windows", name, amount, most, MaxCalendarWindows)
	}
	return nil
}

// refillCalendar is refillStepped for [AnchorCalendar].
func (l *Limit) refillCalendar(s *State, now Instant) (spent int64, at Instant) {
	spent = s.Spent
	if spent != 0 && s.Unit != 1 {
		spent = min(ceilDiv(spent, max(s.Unit, 1)), int64(l.capacity))
	}
	a := l.almanac()
	start := Instant(a.Around(int64(now)).Start)
	if s.AsOf >= start {
		return min(spent, int64(l.capacity+l.debt)), s.AsOf
	}
	if spent <= l.n { // one window start is enough
		return 0, start
	}
	times := ceilDiv(spent, l.n)
	if passed := a.CountStarts(int64(s.AsOf), int64(start), times); passed < times {
		return min(spent-passed*l.n, int64(l.capacity+l.debt)), start
	}
	return 0, start
}

// stepsAfter returns the microseconds from now until the count-th refill after at.
func (l *Limit) stepsAfter(at, now Instant, count int64) int64 {
	a := l.almanac()
	if count == 1 {
		return saturatingAdd(0, a.Around(int64(at)).End-int64(now))
	}
	next, ok := a.StartAfter(int64(at), count)
	if !ok {
		return endless
	}
	return saturatingAdd(0, next-int64(now))
}

// encodeHow returns the text of how in [Limit.Encode].
func (l *Limit) encodeHow() (how uint64, calendar string) {
	if !l.hasCalendar() {
		return l.how, ""
	}
	return l.how & howShape, "," + calendarFrom(l.almanac().Calendar).Encode()
}

// decodeCalendar gives l, decoded from its numbers, the calendar with this text, or none for an empty text.
func (l *Limit) decodeCalendar(text string) error {
	if !l.hasCalendar() && text == "" {
		return nil
	}
	c, err := DecodeCalendar(text)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrLimit, err)
	case !l.hasCalendar() || l.how > howShape:
		return fmt.Errorf("%w: a limit without a calendar has the calendar %q", ErrLimit, text)
	}
	number, err := internCalendar(c)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrLimit, err)
	}
	l.how |= uint64(number) << howStart
	return nil
}
