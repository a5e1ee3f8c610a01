//! Waiting of a connection before a reply: for the event that a command waits for, or for the reply's time. Also runs a
//! request again for the batches and heartbeats that follow its reply.

use super::{Ended, Session};
use crate::acknowledge::let_the_ready_run;
use crate::execute::{ask_for_next, execute};
use crate::executed::Executed;
use crate::scratch;
use crate::socket::Next;
use bunko_command::{Answer, Await, ClientConnection, FollowUp, RunOn};
use bunko_wire::Header;
use std::pin::pin;

/// The reason why a frame runs again.
pub(super) enum More {
    /// The command has no reply yet.
    Later(Box<Await>),
    /// The command's reply is followed by another.
    Next(FollowUp),
}

impl Session {
    /// Goes on with a frame. A command without a reply waits for its event and runs again, until it has a reply. A
    /// command whose reply is followed by others runs again for each batch or heartbeat, until there are no more. No
    /// thread is blocked: a bell, a timer or the socket wakes the connection's task.
    pub(super) async fn go_on(&mut self, mut header: Header, mut frame: Vec<u8>, mut more: More) -> Result<(), Ended> {
        loop {
            let is_client_gone = match more {
                More::Later(wait) => self.wait_for_news(*wait).await,
                More::Next(_) => {
                    ask_for_next(&mut header, &mut frame);
                    self.client.as_mut().expect("no long command is running").note_follow_up();
                    let_the_ready_run().await;
                    false
                }
            };
            let mut out = scratch::with(|scratch| scratch.replies.take());
            let client = self.client.as_mut().expect("no long command is running");
            let mut executed = scratch::with(|scratch| {
                let codec = &mut scratch.codec;
                execute(&self.service, client, codec, &header, &frame, RunOn::SharedThread, &mut out)
            });
            if matches!(executed, Ok(Executed::TooLong)) {
                let apart;
                (frame, out, apart) = self.apart(header, frame, out).await?;
                executed = Ok(apart);
            }
            let next = match executed? {
                Executed::Awaits(next) => Some(More::Later(next)),
                Executed::ClosesConnection => return Err(Ended::FailPoint),
                Executed::Done(Answer { follow_up: Some(follow_up), .. }) => {
                    self.send_followed(&out, follow_up).await?;
                    if is_client_gone && follow_up == FollowUp::Heartbeat {
                        // The client would not receive the next heartbeat, whose command could trigger failpoints meant
                        // for other clients.
                        return Err(Ended::Socket);
                    }
                    Some(More::Next(follow_up))
                }
                Executed::Done(_) | Executed::TooLong => {
                    self.send(&out).await?;
                    None
                }
            };
            scratch::with(|scratch| scratch.replies.give(out));
            match next {
                Some(next) => more = next,
                None => {
                    self.place = None;
                    return Ok(());
                }
            }
        }
    }

    /// Waits for the event. Returns whether the client went away meanwhile.
    async fn wait_for_news(&mut self, wait: Await) -> bool {
        let Await { news, stop, until, turn: _turn } = wait;
        tokio::select! {
            () = news => false,
            () = stop => false,
            () = tokio::time::sleep_until(until.into()) => false,
            () = self.stream.ended() => {
                // The command sees the absence and closes its cursor.
                if let Some(absence) = self.client.as_ref().and_then(ClientConnection::absence) {
                    absence.note();
                }
                true
            }
        }
    }

    /// Delays a reply until its event or its time.
    pub(super) async fn hold(&mut self, answer: Answer) -> Result<(), Ended> {
        match self.client.as_mut().and_then(ClientConnection::take_hold).filter(|_| answer.is_held) {
            Some(wait) => {
                self.wait_for_news(wait).await;
            }
            None => self.pause(answer.delay.unwrap_or_default()).await?,
        }
        Ok(())
    }

    /// Waits for `delay`, or fails early if the client goes away.
    async fn pause(&mut self, delay: std::time::Duration) -> Result<(), Ended> {
        let mut pause = pin!(tokio::time::sleep(delay));
        tokio::select! {
            () = &mut pause => Ok(()),
            next = self.stream.next() => match next? {
                Next::End => Err(Ended::Socket),
                // The client sent another request without waiting for the reply; it gets both replies in order.
                Next::Bytes => {
                    pause.await;
                    Ok(())
                }
            },
        }
    }

    /// Sends a reply that others follow. Closes the cursor of a client that does not take its batch.
    pub(super) async fn send_followed(&mut self, bytes: &[u8], follow_up: FollowUp) -> Result<(), Ended> {
        let sent = self.send(bytes).await;
        if let (Err(_), FollowUp::Batch(cursor)) = (&sent, follow_up) {
            self.service.cursors.kill(cursor, None);
        }
        sent
    }
}
