package histories

import (
	"fmt"
	"io"
)

// EventWriter writes a history in one format. Nothing is sure to be written before Flush.
type EventWriter interface {
	Write(*Event) error
	Flush() error
}

// NewEventWriter is a writer of Native, JSONLines or EDN.
func NewEventWriter(w io.Writer, to Format, h Header) (EventWriter, error) {
	switch to {
	case Native:
		native := NewWriter(w, h)
		return native, native.Err()
	case JSONLines:
		return NewJSONWriter(w, h), nil
	case EDN:
		return NewEDNWriter(w), nil
	}
	return nil, fmt.Errorf("format %q cannot be written, expected one of %v", to, []Format{Native, JSONLines, EDN})
}

// Convert writes what is left of a history in another format. Native and JSONLines keep everything: there and back gives the same bytes.
func Convert(w io.Writer, to Format, from *File) (events int64, err error) {
	out, err := NewEventWriter(w, to, from.Header())
	if err != nil {
		return 0, err
	}
	var ev Event
	for {
		switch err := from.Next(&ev); {
		case err == io.EOF:
			return events, out.Flush()
		case err != nil:
			return events, err
		}
		if err := out.Write(&ev); err != nil {
			return events, err
		}
		events++
		if from.endsBlock() {
			switch out := out.(type) {
			case *Writer:
				err = out.Flush()
			case *JSONWriter:
				err = out.EndBlock()
			}
			if err != nil {
				return events, err
			}
		}
	}
}
