// SPDX-License-Identifier: Apache-2.0

package limit

const most = 1<<3 - 1 // 4 < 5

// Take has a comparison: a < b.
func (l *Limit[K]) Take(_ K, cost int, more ...int) (left int, ok bool) {
	if l.closed || cost > l.capacity-l.spent {
		return 0, false
	}
	for i := range more {
		l.spent += more[i] // costs < 0
	}
	switch {
	case ok:
		panic("1 < 2" + l.name)
	case !l.fits(cost):
		log(make([][4]byte, 0, 8), "a"+l.name+"b")
	}
	l.spent = min(l.spent+cost, l.capacity)
	_ = l.spent
	l.calls++
	return max(0, l.capacity-
		l.spent), true
}
