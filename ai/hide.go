// SPDX-License-Identifier: Apache-2.0

package ai

import "bytes"

// A UsageFilter removes the effects of [AskForUsage] from an OpenAI chat or completions stream. These are the chunk with
// usage and without choices, and the members "usage":null of all others. It works on pieces of any size. It passes each
// complete event on at once. A body that is no event stream must not pass through it. The zero value is ready. It is not
// safe for concurrent use.
type UsageFilter struct {
	event  []byte // the incomplete one
	pass   bool   // it is too long: it passes as it is
	within bool   // within a line
	cr     bool   // behind a \r, which a \n can follow
	ended  bool   // the last line end completed an event
}

// maxHeldEvent bounds the memory for an incomplete event.
const maxHeldEvent = 1 << 20

// Append reads the next piece of the stream and appends the bytes for the client to dst.
func (f *UsageFilter) Append(dst, p []byte) []byte {
	ends := lineEnds{p: p, lf: -1, cr: -1}
	for start := 0; start < len(p); {
		end, complete := f.findEnd(&ends, start)
		piece := p[start:end]
		start = end
		switch {
		case f.pass:
			dst = append(dst, piece...)
		case complete && len(f.event) == 0:
			dst = appendFiltered(dst, piece)
		default:
			f.event = append(f.event, piece...)
			if f.pass = !complete && len(f.event) > maxHeldEvent; f.pass {
				dst = f.Flush(dst)
			} else if complete {
				dst = appendFiltered(dst, f.event)
				f.event = f.event[:0]
			}
		}
		if complete {
			f.pass = false
		}
	}
	return dst
}

// Flush appends an incomplete event at the end of the stream.
func (f *UsageFilter) Flush(dst []byte) []byte {
	dst = append(dst, f.event...)
	f.event = f.event[:0]
	return dst
}

// findEnd returns the end of the event that the bytes from i belong to, or of the bytes.
func (f *UsageFilter) findEnd(ends *lineEnds, i int) (end int, complete bool) {
	p := ends.p
	for i < len(p) {
		c := p[i]
		switch {
		case f.cr && c == '\n':
			i++
			if f.cr = false; f.ended {
				return i, true // a \r ended the event in the last piece
			}
		case c == '\n' || c == '\r':
			i++
			f.cr, f.ended, f.within = c == '\r', !f.within, false
			if !f.ended {
				continue
			}
			if f.cr && i < len(p) && p[i] == '\n' {
				f.cr = false
				i++
			}
			return i, true
		default:
			f.cr, f.within = false, true
			i = ends.find(i)
		}
	}
	return i, false
}

// appendFiltered appends a complete event, or what remains of it.
func appendFiltered(dst, event []byte) []byte {
	start := dataStart(event)
	if start < 0 {
		return append(dst, event...)
	}
	var previous int // the end of the member before
	var usage, choices member
	data := event[start:]
	comma := 0 // before usage
	end := members(data, func(m member) {
		switch string(m.key) {
		case "usage":
			usage, comma = m, previous
		case "choices":
			choices = m
		}
		previous = m.end
	})
	switch {
	case end < 0 || usage.end == 0:
		return append(dst, event...)
	case data[usage.value] == '{' && isEmptyArray(data[choices.value:choices.end]):
		return dst
	case string(data[usage.value:usage.end]) != "null":
		return append(dst, event...)
	}
	from, to := usage.start, skipSpace(data, usage.end)
	if data[to] == ',' {
		to++
	} else if to = usage.end; comma > 0 {
		from = comma
	}
	dst = append(dst, event[:start+from]...)
	return append(dst, event[start+to:]...)
}

// dataStart returns the position of the JSON of an event with one line of data and "usage", or -1.
func dataStart(event []byte) int {
	start := 0
	if !bytes.HasPrefix(event, []byte(dataField)) {
		at := bytes.IndexAny(event, "\r\n")
		for at >= 0 && !bytes.HasPrefix(event[at+1:], []byte(dataField)) {
			next := bytes.IndexAny(event[at+1:], "\r\n")
			if next < 0 {
				return -1
			}
			at += next + 1
		}
		start = at + 1
	}
	start = skipSpace(event, start+len(dataField))
	if start >= len(event) || event[start] != '{' || !bytes.Contains(event[start:], []byte(`"usage"`)) {
		return -1
	}
	return start
}

func isEmptyArray(value []byte) bool {
	return len(value) >= 2 && value[0] == '[' && skipSpace(value, 1) == len(value)-1
}
