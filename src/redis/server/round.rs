//! The requests that have come together on a connection, done in order. Writes that follow one another are
//! gathered: they share a message, and its commit.

use std::sync::Arc;
use std::time::Instant;

use crate::job::Presence;
use crate::redis::boards::{
    Asking, answer_keyspace, answer_read, answer_taking, define, jobs_of, made_definition,
};
use crate::redis::commands::{
    Command, Connection, Needs, Spec, TransactionStep, Write, find, is_of_redis, why_absent,
};
use crate::redis::frames::{Arguments, ProtocolError, Replies};
use crate::redis::refused::Refused;
use crate::redis::server::answers::answer;
use crate::redis::server::figures::Figures;
use crate::redis::server::flow::Flow;
use crate::redis::server::pending::PendingWrites;
use crate::redis::server::service::Service;
use crate::redis::server::session::{Allowed, Session};
use crate::redis::server::transaction::Transaction;

/// The requests that have come together.
pub struct Round<'r> {
    service: &'r Service,
    session: &'r mut Session,
    pub replies: &'r mut Replies,
    allowed: Allowed,
    pending: PendingWrites,
}

impl<'r> Round<'r> {
    pub fn begin(service: &'r Service, session: &'r mut Session, replies: &'r mut Replies) -> Self {
        let allowed = session.allowed(service);
        Self { service, session, replies, allowed, pending: PendingWrites::default() }
    }

    /// Does a request. It is replied to by [`Round::flush`] at the latest.
    pub async fn run(&mut self, arguments: Arguments<'_>) -> Flow {
        let began = Instant::now();
        let name = arguments.get(0).unwrap_or_default();
        if is_http(name) {
            self.flush().await;
            Figures::note_end("http");
            tracing::warn!(
                "a client speaks HTTP to the port of Redis' protocol, as a page in a browser may be made to do; \
                 its connection is closed"
            );
            return Flow::Close;
        }
        let Some(spec) = find(name) else {
            Figures::note_unknown(name);
            self.refuse(("unknown", began), unknown(name, arguments));
            return Flow::Continue;
        };
        self.session.client.note(spec.name, began);
        match self.judge(spec, arguments) {
            Err(refused) => self.refuse((spec.name, began), refused),
            Ok(Command::Transaction(step)) => return self.step(step, (spec.name, began)).await,
            Ok(command) if self.is_kept(&command) => self.keep((spec.name, began), arguments),
            Ok(command) => return self.perform((spec.name, began), command).await,
        }
        Flow::Continue
    }

    /// What is asked for, if the client may ask for it.
    fn judge<'b>(&self, spec: &Spec, arguments: Arguments<'b>) -> Result<Command<'b>, Refused> {
        spec.check_arity(arguments.len())?;
        self.check_allowed(spec)?;
        (spec.parse)(arguments)
    }

    /// Whether a command waits for `EXEC`.
    fn is_kept(&self, command: &Command<'_>) -> bool {
        let is_at_once = matches!(command, Command::Connection(Connection::Quit | Connection::Reset));
        self.session.transaction.is_some() && !is_at_once
    }

    fn keep(&mut self, command: (&'static str, Instant), arguments: Arguments<'_>) {
        let Some(transaction) = &mut self.session.transaction else { return };
        match transaction.push(arguments) {
            Ok(()) => {
                self.replies.word("QUEUED");
                self.service.figures.note(command.0, command.1.elapsed(), false);
            }
            Err(refused) => self.refuse(command, refused),
        }
    }

    /// Begins, ends or forgets a transaction.
    async fn step(&mut self, step: TransactionStep, (name, began): (&'static str, Instant)) -> Flow {
        self.flush().await;
        let kept = match (step, self.session.transaction.take()) {
            (TransactionStep::Begin, None) => {
                self.session.transaction = Some(Transaction::default());
                Ok(None)
            }
            (TransactionStep::Begin, kept) => {
                self.session.transaction = kept;
                Err(Refused::new("ERR MULTI calls can not be nested"))
            }
            (TransactionStep::Execute, None) => Err(Refused::new("ERR EXEC without MULTI")),
            (TransactionStep::Discard, None) => Err(Refused::new("ERR DISCARD without MULTI")),
            (TransactionStep::Discard, Some(_)) => Ok(None),
            (TransactionStep::Execute, Some(kept)) => kept.commands().map(Some),
        };
        let mut flow = Flow::Continue;
        match kept {
            Err(refused) => {
                self.replies.error(refused.text());
                self.service.figures.note(name, began.elapsed(), true);
                return flow;
            }
            Ok(None) => self.replies.ok(),
            Ok(Some(commands)) => {
                self.replies.array(commands.len());
                for command in &commands {
                    flow = self.perform_kept(command.arguments()).await;
                }
                self.flush().await;
            }
        }
        self.service.figures.note(name, began.elapsed(), false);
        flow
    }

    /// Does a command of a transaction.
    async fn perform_kept(&mut self, arguments: Arguments<'_>) -> Flow {
        let began = Instant::now();
        let Some(spec) = find(arguments.get(0).unwrap_or_default()) else { return Flow::Continue };
        match self.judge(spec, arguments) {
            Ok(command) => self.perform((spec.name, began), command).await,
            Err(refused) => {
                self.refuse((spec.name, began), refused);
                Flow::Continue
            }
        }
    }

    async fn perform(&mut self, (name, began): (&'static str, Instant), command: Command<'_>) -> Flow {
        match self.answer((name, began), command).await {
            Ok(Answered::Replied(flow)) => {
                self.service.figures.note(name, began.elapsed(), false);
                flow
            }
            Ok(Answered::Gathered) => {
                if self.pending.is_full() {
                    self.flush().await;
                }
                Flow::Continue
            }
            Err(refused) => {
                self.refuse((name, began), refused);
                Flow::Continue
            }
        }
    }

    /// Replies to everything that was gathered.
    pub async fn flush(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let pending = std::mem::take(&mut self.pending);
        let Self { service, session, replies, allowed, .. } = self;
        let limited = allowed.grant().filter(|grant| grant.max_boards.is_some());
        let written = pending.send(&service.operations, limited, &service.figures, replies).await;
        session.note_written(written);
    }

    /// Replies to what is no request.
    pub async fn end(&mut self, why: ProtocolError) {
        self.flush().await;
        Figures::note_end("protocol");
        self.replies.error(Refused::from(why).text());
    }

    fn refuse(&mut self, (name, began): (&'static str, Instant), refused: Refused) {
        if let Some(transaction) = &mut self.session.transaction {
            transaction.is_refused = true;
        }
        if self.pending.is_empty() {
            self.replies.error(refused.text());
            self.service.figures.note(name, began.elapsed(), true);
        } else {
            self.pending.push_refused((name, began), refused);
        }
    }

    async fn answer(
        &mut self,
        name: (&'static str, Instant),
        command: Command<'_>,
    ) -> Result<Answered, Refused> {
        match command {
            Command::Write(key, write) => {
                self.gather(name, key, &write).await?;
                Ok(Answered::Gathered)
            }
            Command::Read(key, read) => {
                self.flush().await;
                let Self { service, session, replies, allowed, .. } = self;
                let asking = asking(service, session, allowed);
                answer_read(&asking, key, &read, replies).await?;
                Ok(Answered::Replied(Flow::Continue))
            }
            Command::Take(taking) => {
                self.flush().await;
                let Self { service, session, replies, allowed, .. } = self;
                let mut written = session.written.clone();
                let asking = asking(service, session, allowed);
                let to = (&mut written, &mut **replies);
                let answered = answer_taking(&service.operations, &service.pops, &asking, &taking, to).await;
                session.note_written(written);
                answered?;
                Ok(Answered::Replied(Flow::Continue))
            }
            Command::Keyspace(command) => {
                self.flush().await;
                let Self { service, session, replies, allowed, .. } = self;
                let asking = asking(service, session, allowed);
                let written = answer_keyspace(&service.operations, &asking, &command, replies).await?;
                if let Some(written) = written {
                    session.note_written(written);
                }
                Ok(Answered::Replied(Flow::Continue))
            }
            Command::Connection(command) => {
                self.flush().await;
                let Self { service, session, replies, allowed, .. } = self;
                let flow = answer(service, session, allowed, &command, replies).await?;
                self.allowed = self.session.allowed(self.service);
                Ok(Answered::Replied(flow))
            }
            // It was taken before.
            Command::Transaction(_) => Err(Refused::syntax()),
        }
    }

    /// # Errors
    /// When the client may not send the command, whatever its keys are.
    fn check_allowed(&self, spec: &Spec) -> Result<(), Refused> {
        let Needs::Token(scope) = spec.needs else { return Ok(()) };
        match &self.allowed {
            Allowed::Everything => Ok(()),
            Allowed::Nothing => Err(Refused::not_authenticated()),
            Allowed::By(grant) if grant.allows(scope) => Ok(()),
            Allowed::By(grant) => Err(Refused::no_scope(&grant.name, spec.name, scope)),
        }
    }

    /// Gathers a write, and makes its board before if there is none.
    async fn gather(
        &mut self,
        command: (&'static str, Instant),
        key: &[u8],
        write: &Write<'_>,
    ) -> Result<(), Refused> {
        let key = asking(self.service, self.session, &self.allowed).board(key)?;
        key.check_writable()?;
        let creates = match write {
            Write::Add(add) => add.presence != Presence::Existing,
            Write::Remove(_) => false,
        };
        let definition = if let Some(definition) = &key.definition {
            Arc::clone(definition)
        } else {
            // Whatever is wrong with the command is wrong before a board is made for it.
            let made = Arc::new(made_definition());
            let (jobs, reply) = jobs_of(&key, &made, write)?;
            if !creates {
                self.pending.push(command, Vec::new(), reply, made);
                return Ok(());
            }
            drop(jobs);
            self.flush().await;
            let token = define(&self.service.operations, &key, self.allowed.grant()).await?;
            self.session.note_written(token);
            let known = self.service.operations.registry.get(key.board.as_str());
            known.map_or(made, |known| known.definition)
        };
        let (jobs, reply) = jobs_of(&key, &definition, write)?;
        self.pending.push(command, jobs, reply, definition);
        Ok(())
    }
}

fn asking<'a>(service: &'a Service, session: &'a Session, allowed: &'a Allowed) -> Asking<'a> {
    let grant = allowed.grant().map(AsRef::as_ref);
    Asking { operations: &service.operations, grant, written: &session.written }
}

enum Answered {
    Replied(Flow),
    /// The reply comes with those of other writes.
    Gathered,
}

/// Whether a request begins as one of HTTP does, or one of its lines.
fn is_http(name: &[u8]) -> bool {
    [&b"POST"[..], b"Host:"].iter().any(|word| name.eq_ignore_ascii_case(word))
}

fn unknown(name: &[u8], arguments: Arguments<'_>) -> Refused {
    let refused = Refused::unknown_command(name, arguments.iter().skip(1));
    match is_of_redis(name).and_then(why_absent) {
        Some(why) => Refused::new(format!("{}({why})", refused.text())),
        None => refused,
    }
}
