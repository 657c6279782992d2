//! The requests that have come together on a connection, done in order. Writes that follow one another are
//! gathered: they share a message, and its commit.

use std::sync::Arc;
use std::time::Instant;

use crate::job::Presence;
use crate::redis::boards::{
    BoardKey, answer_combined, answer_keyspace, answer_read, answer_storing, answer_taking, count_unsent,
    define, end_over, end_those_over, is_over, jobs_of, made_definition,
};
use crate::redis::commands::{
    Command, Connection, Keyspace, Needs, Spec, TransactionStep, Write, find, is_of_redis, why_absent,
};
use crate::redis::frames::{Arguments, Mark, ProtocolError};
use crate::redis::refused::Refused;
use crate::redis::server::answers::answer;
use crate::redis::server::audit::Audited;
use crate::redis::server::figures::Figures;
use crate::redis::server::flow::Flow;
use crate::redis::server::incoming::Incoming;
use crate::redis::server::outgoing::Outgoing;
use crate::redis::server::pending::PendingWrites;
use crate::redis::server::service::Service;
use crate::redis::server::session::{Allowed, Session};
use crate::redis::server::transaction::{KeptCommands, Transaction};
use crate::types::AsOf;

/// After so many requests, others have their turn.
pub const REQUESTS_PER_TURN: usize = 256;

/// The command that ends a transaction.
const EXEC: &str = "exec";

/// The requests that have come together.
pub struct Round<'r, 'c> {
    service: &'r Service,
    session: &'r mut Session,
    pub out: &'r mut Outgoing<'c>,
    allowed: Allowed,
    pending: PendingWrites,
    /// A transaction that is to be done, and when its `EXEC` came.
    ended: Option<(KeptCommands, Instant)>,
}

impl<'r, 'c> Round<'r, 'c> {
    pub fn begin(service: &'r Service, session: &'r mut Session, out: &'r mut Outgoing<'c>) -> Self {
        let allowed = session.allowed(service);
        session.forget_unheard(&service.operations);
        Self { service, session, out, allowed, pending: PendingWrites::default(), ended: None }
    }

    /// Whether the client may do anything.
    pub fn has_token(&self) -> bool {
        self.allowed != Allowed::Nothing
    }

    /// Does a request; if it ends a transaction, [`Round::execute`] does that. It is replied to by
    /// [`Round::flush`] at the latest.
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
        if self.session.transaction.is_some() && spec.waits_for_exec() {
            self.keep(spec, began, arguments);
            return Flow::Continue;
        }
        match self.judge(spec, arguments) {
            Err(refused) if spec.name == EXEC => {
                self.session.transaction = None;
                self.refuse((spec.name, began), refused.ends_transaction());
            }
            Err(refused) => self.refuse((spec.name, began), refused),
            Ok(Command::Transaction(step)) => self.step(step, (spec.name, began)).await,
            Ok(command) => return self.perform((spec.name, began), command, arguments).await,
        }
        Flow::Continue
    }

    /// What is asked for, if the client may ask for it.
    fn judge<'b>(&self, spec: &Spec, arguments: Arguments<'b>) -> Result<Command<'b>, Refused> {
        spec.check_arity(arguments.len())?;
        self.check_allowed(spec)?;
        (spec.parse)(arguments)
    }

    /// Keeps a command for `EXEC`. What is wrong with its arguments is told there, as in Redis.
    fn keep(&mut self, spec: &Spec, began: Instant, arguments: Arguments<'_>) {
        let judged = spec.check_arity(arguments.len()).and_then(|()| self.check_allowed(spec));
        let kept = match &mut self.session.transaction {
            Some(transaction) => judged.and_then(|()| transaction.push(arguments)),
            None => judged,
        };
        match kept {
            Ok(()) => {
                self.out.replies.word("QUEUED");
                self.service.figures.note(spec.name, began.elapsed(), false);
            }
            Err(refused) => self.refuse((spec.name, began), refused),
        }
    }

    /// Begins, ends or forgets a transaction.
    async fn step(&mut self, step: TransactionStep, (name, began): (&'static str, Instant)) {
        self.flush().await;
        let kept = match (step, self.session.transaction.take()) {
            (TransactionStep::Begin, None) => {
                let admission = &self.service.operations.admission;
                self.session.transaction = Some(Transaction::begin(admission));
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
        let has_failed = kept.is_err();
        match kept {
            Err(refused) => self.out.replies.error(refused.text()),
            Ok(None) => self.out.replies.ok(),
            Ok(Some(kept)) => {
                self.ended = Some((kept, began));
                return;
            }
        }
        self.service.figures.note(name, began.elapsed(), has_failed);
    }

    /// Does the commands of a transaction that was ended, and sends long replies meanwhile. If the client
    /// does not take them, the writes are done all the same: they were sent to be done together.
    pub async fn execute(&mut self, incoming: &mut Incoming) -> Flow {
        let mut flow = Flow::Continue;
        let Some((kept, began)) = self.ended.take() else { return flow };
        self.out.replies.array(kept.commands.len());
        for (command, nth) in kept.commands.iter().zip(1_usize..) {
            let arguments = command.arguments();
            let writes = find(arguments.get(0).unwrap_or_default()).is_some_and(Spec::writes);
            if flow == Flow::Continue || writes {
                flow = flow.or(self.perform_kept(arguments).await);
            }
            if self.out.is_long() && self.out.send(Some(&mut *incoming)).await.is_err() {
                flow = Flow::Close;
            }
            if nth.is_multiple_of(REQUESTS_PER_TURN) {
                tokio::task::yield_now().await;
            }
        }
        self.flush().await;
        self.service.figures.note(EXEC, began.elapsed(), false);
        flow
    }

    /// Does a command of a transaction.
    async fn perform_kept(&mut self, arguments: Arguments<'_>) -> Flow {
        let began = Instant::now();
        let Some(spec) = find(arguments.get(0).unwrap_or_default()) else { return Flow::Continue };
        match self.judge(spec, arguments) {
            Ok(command) => self.perform((spec.name, began), command, arguments).await,
            Err(refused) => {
                self.refuse((spec.name, began), refused);
                Flow::Continue
            }
        }
    }

    async fn perform(
        &mut self,
        (name, began): (&'static str, Instant),
        command: Command<'_>,
        arguments: Arguments<'_>,
    ) -> Flow {
        let audited = Audited::of((&*self.session, &self.allowed), (name, &command), arguments);
        let note = |outcome: Result<(), &Refused>| audited.into_iter().for_each(|one| one.finish(outcome));
        if let Command::Write(key, write) = &command {
            let gathered = self.gather((name, began), key, write).await;
            note(gathered.as_ref().copied());
            if let Err(refused) = gathered {
                self.refuse((name, began), refused);
            }
            if self.pending.is_full() {
                self.flush().await;
            }
            return Flow::Continue;
        }
        self.flush().await;
        let (mark, changes) = (self.out.replies.mark(), changes(&command));
        let answered = match self.answer(command).await {
            // What was changed has to be told: its reply is short, or there was room for it.
            Ok(flow) => match count_unsent(&self.out.unsent, &self.out.replies) {
                Err(refused) if !changes => Err(refused),
                _ => Ok(flow),
            },
            Err(refused) => Err(refused),
        };
        note(answered.as_ref().map(|_| ()));
        match answered {
            Ok(flow) => {
                self.service.figures.note(name, began.elapsed(), false);
                flow
            }
            Err(refused) => {
                self.take_back(mark);
                self.refuse((name, began), refused);
                Flow::Continue
            }
        }
    }

    /// Forgets what was written of a reply.
    fn take_back(&mut self, mark: Mark) {
        self.out.replies.truncate(mark);
        // Fewer bytes are never too many.
        let _ = count_unsent(&self.out.unsent, &self.out.replies);
    }

    /// Replies to everything that was gathered.
    pub async fn flush(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let pending = std::mem::take(&mut self.pending);
        let Self { service, session, out, allowed, .. } = self;
        let limited = allowed.grant().filter(|grant| grant.max_boards.is_some());
        let written = pending.send(&service.operations, limited, &service.figures, &mut out.replies).await;
        session.note_written(written);
    }

    /// Replies to what is no request.
    pub async fn end(&mut self, why: ProtocolError) {
        self.flush().await;
        Figures::note_end("protocol");
        self.out.replies.error(Refused::from(why).text());
    }

    fn refuse(&mut self, (name, began): (&'static str, Instant), refused: Refused) {
        if let Some(transaction) = &mut self.session.transaction {
            transaction.refuse();
        }
        if self.pending.is_empty() {
            self.out.replies.error(refused.text());
            self.service.figures.note(name, began.elapsed(), true);
        } else {
            self.pending.push_refused((name, began), refused);
        }
    }

    /// Answers a command that is no write of jobs.
    async fn answer(&mut self, command: Command<'_>) -> Result<Flow, Refused> {
        let Self { service, session, out, allowed, .. } = self;
        let Outgoing { stream, replies, unsent, .. } = &mut **out;
        match command {
            Command::Read(key, read) => {
                let asking = session.asking(service, allowed, &**stream, unsent);
                answer_read(&asking, key, &read, replies).await?;
            }
            Command::Combine(combining) => {
                let asking = session.asking(service, allowed, &**stream, unsent);
                answer_combined(&asking, &combining, replies).await?;
            }
            Command::Take(taking) => {
                let mut written = session.written.clone();
                let asking = session.asking(service, allowed, &**stream, unsent);
                end_those_over(&service.operations, &asking, taking.keys()).await?;
                let to = (&mut written, &mut *replies);
                let answered = answer_taking(&service.operations, &service.pops, &asking, &taking, to).await;
                session.note_written(written);
                answered?;
            }
            Command::Store(storing) => {
                let mut written = session.written.clone();
                let asking = session.asking(service, allowed, &**stream, unsent);
                let by = (&service.operations, allowed.grant());
                end_those_over(&service.operations, &asking, storing.keys()).await?;
                let answered = answer_storing(by, &asking, &storing, (&mut written, replies)).await;
                session.note_written(written);
                if let Some(unheard) = answered? {
                    session.note_unheard(unheard);
                }
            }
            Command::Keyspace(command) => {
                let mut written = AsOf::default();
                let asking = session.asking(service, allowed, &**stream, unsent);
                end_those_over(&service.operations, &asking, command.changed_keys()).await?;
                let done =
                    answer_keyspace(&service.operations, &asking, &command, replies, &mut written).await;
                session.note_written(written);
                done?;
            }
            Command::Connection(command) => {
                let flow = answer(service, session, allowed, (&**stream, unsent), &command, replies).await?;
                self.allowed = self.session.allowed(self.service);
                return Ok(flow);
            }
            // They were taken before.
            Command::Write(..) | Command::Transaction(_) => return Err(Refused::syntax()),
        }
        Ok(Flow::Continue)
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
        let key = self.key_of(key).await?;
        key.check_writable()?;
        let (creates, members) = match write {
            Write::Add(add) => (add.presence != Presence::Existing, add.pairs.len()),
            Write::Remove(ids) => (false, ids.len()),
        };
        self.pending.admit(&self.service.operations.admission, members)?;
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
            if known.is_none() {
                self.session.note_unheard(key.board.clone());
            }
            self.pending.admit(&self.service.operations.admission, members)?;
            known.map_or(made, |known| known.definition)
        };
        let (jobs, reply) = jobs_of(&key, &definition, write)?;
        self.pending.push(command, jobs, reply, definition);
        Ok(())
    }

    /// The board of a key that is written to. One that this connection has made may not be heard of yet.
    async fn key_of(&mut self, key: &[u8]) -> Result<BoardKey, Refused> {
        let is_unheard = !self.session.unheard.is_empty();
        if is_unheard {
            self.flush().await;
        }
        let Self { service, session, out, allowed, .. } = self;
        let asking = session.asking(service, allowed, &*out.stream, &out.unsent);
        let mut found = asking.board(key)?;
        if found.definition.is_none() && is_unheard {
            asking.begin(Some(&found.board)).await?;
            found = asking.board(key)?;
        }
        if is_over(&self.service.operations, &found) {
            // What was gathered for the key before is of the life that is over.
            self.flush().await;
            end_over(&self.service.operations, &found).await?;
            found = BoardKey::of(&self.service.operations, key)?;
        }
        Ok(found)
    }
}

/// Whether a command that is no write of jobs changes anything, if only the connection.
fn changes(command: &Command<'_>) -> bool {
    match command {
        Command::Read(..) | Command::Combine(_) => false,
        Command::Keyspace(command) => {
            matches!(command, Keyspace::Delete(_) | Keyspace::Expire(_) | Keyspace::Persist(_))
        }
        Command::Connection(command) => !matches!(
            command,
            Connection::Ping(_)
                | Connection::Echo(_)
                | Connection::Command(_)
                | Connection::Info(_)
                | Connection::ConfigGet(_)
                | Connection::Help(_)
        ),
        Command::Write(..) | Command::Take(_) | Command::Store(_) | Command::Transaction(_) => true,
    }
}

/// Whether a request begins as one of HTTP does, or one of its lines.
fn is_http(name: &[u8]) -> bool {
    [&b"POST"[..], b"Host:"].iter().any(|word| name.eq_ignore_ascii_case(word))
}

fn unknown(name: &[u8], arguments: Arguments<'_>) -> Refused {
    Refused::unknown_command(name, arguments.iter().skip(1), is_of_redis(name).and_then(why_absent))
}
