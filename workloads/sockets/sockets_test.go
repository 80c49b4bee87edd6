package sockets

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ackproof/workloads"
)

// broker answers each frame of the one connection that it accepts with what answer gives; nil: it hangs up.
func broker(t *testing.T, answer func(id []byte) []byte) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		for {
			var size [4]byte
			if _, err := io.ReadFull(c, size[:]); err != nil {
				return
			}
			frame := make([]byte, binary.BigEndian.Uint32(size[:]))
			if _, err := io.ReadFull(c, frame); err != nil {
				return
			}
			out := answer(frame[4:8])
			if out == nil {
				return
			}
			if _, err := c.Write(out); err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String()
}

// frame puts the length before correlation id and body.
func frame(id []byte, body ...byte) []byte {
	out := binary.BigEndian.AppendUint32(nil, uint32(len(id)+len(body)))
	return append(append(out, id...), body...)
}

func world(t *testing.T) *Env {
	return New(t.Context(), make(chan struct{}), time.Now(), 1, 1)
}

// versions is a request whose answer of version 0 is an error code and an array.
func versions() kmsg.Request { return kmsg.NewPtrApiVersionsRequest() }

func TestARoundTripAndItsBadAnswers(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer func(id []byte) []byte
		want   string // in the error; "": a good answer
	}{
		{"good", func(id []byte) []byte { return frame(id, 0, 0, 0, 0, 0, 0) }, ""},
		{"hung up", func([]byte) []byte { return nil }, "EOF"},
		{"another request's answer", func([]byte) []byte { return frame([]byte{0, 0, 0, 99}, 0, 0, 0, 0, 0, 0) }, "answer to request 99"},
		{"too long", func(id []byte) []byte { return append([]byte{0x7f, 0xff, 0xff, 0xff}, id...) }, "frame of"},
		{"negative length", func(id []byte) []byte { return append([]byte{0xff, 0xff, 0xff, 0xff}, id...) }, "frame of"},
		{"cut off", func(id []byte) []byte { return frame(id, 0) }, "ApiVersions"},
	} {
		conn, err := world(t).Dial(broker(t, c.answer), time.Second)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := conn.RoundTrip(versions(), 5*time.Second)
		conn.Close()
		switch {
		case c.want == "" && (err != nil || resp == nil):
			t.Errorf("%s: %v, %v", c.name, resp, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: error %v, expected one with %q", c.name, err, c.want)
		case errors.Is(err, workloads.ErrNotSent):
			t.Errorf("%s: the error says that nothing was sent: %v", c.name, err)
		}
	}
}

func TestARefusedDialSentNothing(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if _, err := world(t).Dial(l.Addr().String(), time.Second); !errors.Is(err, workloads.ErrNotSent) {
		t.Errorf("error %v, expected %v", err, workloads.ErrNotSent)
	}
}

func TestAWriteWithoutAcknowledgementDoesNotWait(t *testing.T) {
	conn, err := world(t).Dial(broker(t, func([]byte) []byte { return nil }), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks = 9, 0
	if resp, err := conn.RoundTrip(req, time.Second); resp != nil || err != nil {
		t.Errorf("%v, %v, expected no answer and no error", resp, err)
	}
}

func TestTheEndOfTheRunBreaksConnectionsAndSleeps(t *testing.T) {
	hard, end := context.WithCancel(t.Context())
	env := New(hard, make(chan struct{}), time.Now(), 1, 1)
	asked := make(chan struct{})
	block := make(chan struct{})
	conn, err := env.Dial(broker(t, func([]byte) []byte { close(asked); <-block; return nil }), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	failed := make(chan error)
	go func() {
		_, err := conn.RoundTrip(versions(), time.Hour)
		failed <- err
	}()
	<-asked
	end()
	if err := <-failed; err == nil {
		t.Error("the request was answered")
	}
	close(block)
	env.Sleep(time.Hour)
	if !env.Stopped() {
		t.Error("the client is not told to stop")
	}
}
