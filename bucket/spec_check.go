// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"fmt"
	"time"
)

// check validates everything except the bounds of the rate's arithmetic.
func (s Spec) check() error {
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrLimit}, args...)...)
	}
	if s.Algorithm > AlgorithmConcurrency {
		return refuse("%v is unknown", s.Algorithm)
	}
	if s.Capacity < 0 || s.Capacity > MaxTokens {
		return refuse("capacity %v: must be between 0 and %v", s.Capacity, MaxTokens)
	}
	if err := s.Rate.check(); err != nil {
		return refuse("%w", err)
	}
	if s.Queue != 0 {
		switch {
		case s.MaxReserved != nil:
			return refuse("queue and max reserved are both set: the queue already bounds the debt")
		case s.Algorithm > AlgorithmStepped:
			return refuse("a %v has no queue", s.Algorithm)
		case s.Queue < 0 || s.Queue > MaxTokens-s.Capacity:
			return refuse("queue %v: must be between 0 and %v with a capacity of %v", s.Queue, MaxTokens-s.Capacity, s.Capacity)
		}
	}
	if s.MaxReserved != nil && (*s.MaxReserved < 0 || *s.MaxReserved > MaxTokens-s.Capacity) {
		return refuse("max reserved %v: must be between 0 and %v with a capacity of %v", *s.MaxReserved, MaxTokens-s.Capacity, s.Capacity)
	}
	if s.Algorithm != AlgorithmStepped && (s.Anchor != AnchorEpoch || s.Start != 0) {
		return refuse("a %v has no intervals to anchor", s.Algorithm)
	}
	if err := s.checkCalendar(refuse); err != nil {
		return err
	}
	switch s.Algorithm {
	case AlgorithmStepped:
		return s.checkSteps(refuse)
	case AlgorithmSlidingWindow, AlgorithmSlidingLog, AlgorithmConcurrency:
		return s.checkWindow(refuse)
	}
	return nil
}

func (s Spec) checkSteps(refuse func(string, ...any) error) error {
	switch {
	case s.Anchor > AnchorCalendar:
		return refuse("anchor %d is unknown", s.Anchor)
	case s.Rate.Per.Microseconds() > maxStepMicros:
		return refuse("an interval of %v: must be at most %v", s.Rate.Per, time.Duration(maxStepMicros)*time.Microsecond)
	case s.Start != 0 && s.Anchor != AnchorEpoch:
		return refuse("a start requires the anchor epoch")
	case s.Start < 0 || s.Start >= s.Rate.Per || s.Start%time.Microsecond != 0:
		return refuse("start %v: must be between 0 and the interval of %v, in whole microseconds", s.Start, s.Rate.Per)
	}
	return nil
}

func (s Spec) checkWindow(refuse func(string, ...any) error) error {
	most, longest := MaxWindowTokens, time.Duration(maxWindowMicros)*time.Microsecond
	switch s.Algorithm {
	case AlgorithmSlidingLog:
		most = MaxLogTokens
	case AlgorithmConcurrency:
		if most = MaxSlots * Token; s.Rate.Tokens%Token != 0 {
			return refuse("%v slots in a %v: must be a whole number", s.Rate.Tokens, s.Algorithm)
		}
	}
	switch {
	case s.Capacity != 0 && s.Capacity != s.Rate.Tokens:
		return refuse("a %v holds the %v tokens of its rate, not %v", s.Algorithm, s.Rate.Tokens, s.Capacity)
	case s.Rate.Tokens > most:
		return refuse("%v tokens in a %v: must be at most %v", s.Rate.Tokens, s.Algorithm, most)
	case s.Rate.Per > longest:
		return refuse("a window of %v: must be at most %v", s.Rate.Per, longest)
	case s.MaxReserved != nil && *s.MaxReserved != 0:
		return refuse("a %v has no reservations: max reserved must be 0 or unset", s.Algorithm)
	}
	return nil
}
