//! A member's entry: to read, to write, to remove; its neighbours, its friends, and its other boards.

use std::sync::Arc;

use smallvec::smallvec;

use crate::board::Definition;
use crate::http::render::fields::{self, CopiedParts};
use crate::http::render::json::{self, Object};
use crate::http::render::problem::Problem;
use crate::http::render::repeated::Repeated;
use crate::http::render::reply::Reply;
use crate::http::render::results::{accepted, write_result};
use crate::http::request::call::Call;
use crate::http::request::job_list::check_numbers;
use crate::http::request::json_body::{BATCH_MAX, parse_list};
use crate::http::request::params::{Params, WRITES, board_name, invalid_value, list_of, number};
use crate::http::resources::entered::{EnteredInstances, WindowsAsked, entry_by_window};
use crate::http::resources::hidden::asks_for_hidden;
use crate::job::{Job, Op, Targets};
use crate::operations::{JobResult, Wait, WriteOptions};
use crate::query::{
    Around, AroundMember, BoardSelection, InstanceAsked, LookupMembers, MemberOf, MemberOnBoards, NoBoard,
    WindowChoice,
};
use crate::state::TreeId;
use crate::types::{BoardName, Malformed, MemberId};
use crate::window::{Instance, Window};
use crate::wire;
use crate::wire::lenient::text_of;

/// The most neighbours on a side.
pub const NEIGHBOURS_MAX: u64 = 500;
/// The parameters of a write of one entry.
const PUT_PARAMS: [&str; 3] = ["wait", "results", "windows"];
/// Neighbours on a side when the request does not say.
pub const NEIGHBOURS: u64 = 4;

pub async fn get(call: Box<Call>) -> Result<Reply, Problem> {
    let named = ["movement", "hidden", "windows", "reached_at", "version"];
    let (params, accuracy) = call.read_params_with_accuracy(&named).await?;
    let parts = CopiedParts { reached_at: params.flag("reached_at")?, version: params.flag("version")? };
    let hidden = asks_for_hidden(&call, &params)?;
    if let Some(windows) = params.windows()? {
        accuracy.check_exact()?;
        if params.movement()?.is_some() {
            return Err(Problem::bad_parameter("movement and windows are both given; give one of them"));
        }
        if parts != CopiedParts::default() {
            let detail = "reached_at and version are of one entry; give window in place of windows";
            return Err(Problem::bad_parameter(detail));
        }
        let entries = entry_by_window(&call, call.board_name()?, call.member()?, windows, hidden).await?;
        return Ok(Reply::object(|object| {
            object.text("board", call.board());
            object.text("member", call.segment("member"));
            entries.write(object);
            call.write_answer_end(object, &entries.as_of);
        }));
    }
    let member = call.member()?;
    let asked = call.with_movement(&params, MemberOf { member: member.clone() }, 1)?;
    if asked.movement.is_some() {
        accuracy.check_exact()?;
    }
    let (answer, errors) = call.ask_entries_by_accuracy(accuracy, asked).await?;
    call.api.operations.check_home_replied(&call.reading, &member)?;
    let entry = match answer.body {
        Some(entry) => entry,
        None if hidden => return hidden_entry(&call, &answer.definition, answer.instance, parts).await,
        None => return Err(Problem::unknown_member_of(&answer.definition)),
    };
    Ok(Reply::object(|object| {
        let window = fields::instance_name(answer.instance);
        fields::entry(object, call.board(), &window, &entry, &answer.as_of);
        fields::copied_parts(object, &entry.listed, parts);
        errors.write(object, 0);
        call.write_freshness(object);
    }))
}

/// The entry of a member that is not listed, if it is hidden or beyond the capacity.
async fn hidden_entry(
    call: &Call,
    definition: &Definition,
    instance: Instance,
    parts: CopiedParts,
) -> Result<Reply, Problem> {
    let asked = InstanceAsked { choice: WindowChoice::Named(instance), ..call.instance_asked() };
    let (member, boards) = (call.member()?, BoardSelection::Named(vec![call.board_name()?]));
    let asked =
        MemberOnBoards { member: member.clone(), boards, instance: asked, windows: None, hidden: true };
    let answer = call.ask_with_metadata(asked).await?;
    call.api.operations.check_home_replied(&call.reading, &member)?;
    let (_, entry) = answer.entries.first().ok_or_else(|| Problem::unknown_member_of(definition))?;
    Ok(Reply::object(|object| {
        let window = fields::instance_name(instance);
        fields::entry(object, call.board(), &window, entry, &answer.as_of);
        fields::copied_parts(object, &entry.listed, parts);
        call.write_freshness(object);
    }))
}

pub async fn around(call: Box<Call>) -> Result<Reply, Problem> {
    let params = call.read_params(&["above", "below", "fill", "movement", "with", "with_rank"]).await?;
    let asked = Around {
        above: params.bounded("above", NEIGHBOURS, 0, NEIGHBOURS_MAX)?,
        below: params.bounded("below", NEIGHBOURS, 0, NEIGHBOURS_MAX)?,
        fill: params.flag("fill")?,
    };
    let member = call.member()?;
    let entries = usize::try_from(asked.above + asked.below + 1).unwrap_or(usize::MAX);
    let asked = AroundMember { member: member.clone(), around: asked };
    let asked = call.with_movement(&params, asked, entries)?;
    let columns = call.columns(&params, entries).await?;
    let mut answer = call.ask_table(call.window(), asked, columns).await?;
    call.api.operations.check_home_replied(&call.reading, &member)?;
    let entries = answer.body.take().ok_or_else(|| Problem::unknown_member_of(&answer.definition))?;
    Ok(Reply::sized(entries.len() * 160 + 200, |object| {
        fields::write_answer_start(object, call.board(), &answer);
        fields::entries(object, &entries);
        call.write_answer_end(object, &answer.as_of);
    }))
}

fn member_id(json: &str) -> Result<MemberId, Problem> {
    let id = text_of(json);
    let id = id.and_then(|text| MemberId::new(text.as_ref()).ok());
    id.ok_or_else(|| Problem::malformed_text(&Malformed::Member, text_of(json).as_deref().unwrap_or(json)))
}

pub async fn lookup(call: Box<Call>) -> Result<Reply, Problem> {
    let params = call.read_params(&["movement", "with", "with_rank"]).await?;
    let members: Arc<[MemberId]> = match wire::plain_members(&call.body, "members", BATCH_MAX) {
        Some(members) => members.into(),
        None => parse_list(&call.body, "members", r#"{"members": ["p42", "p43"]}"#)?
            .into_iter()
            .map(member_id)
            .collect::<Result<_, Problem>>()?,
    };
    let named = Arc::clone(&members);
    let asked = call.with_movement(&params, LookupMembers { members }, named.len())?;
    let columns = call.columns(&params, named.len()).await?;
    let answer = call.ask_table(call.window(), asked, columns).await?;
    Ok(Reply::sized(named.len() * 180 + 200, |object| {
        fields::write_answer_start(object, call.board(), &answer);
        object.array("entries", &answer.body.entries, |out, (listed, group_rank)| {
            let mut object = Object::begin(out);
            object.count("group_rank", *group_rank);
            fields::listed(&mut object, listed);
            object.end();
        });
        let not_found = answer.body.not_found.iter().filter_map(|index| named.get(*index));
        // Where the shard did not reply, it is unknown whether the member is there.
        let not_found =
            not_found.filter(|member| call.api.operations.check_home_replied(&call.reading, member).is_ok());
        object.array("not_found", not_found, |out, member| json::text(out, member.as_str()));
        call.write_answer_end(object, &answer.as_of);
    }))
}

/// The job of a write of one entry, and how it is answered.
fn read_put(call: &Call) -> Result<(Vec<Job>, WriteOptions, Option<WindowsAsked>), Problem> {
    let params = Params::parse(call.query(), &PUT_PARAMS)?;
    let options = params.write_options(call.api.operations.default_wait())?;
    let windows = WindowsAsked::of(&params, options)?;
    let (board, member) = (call.board_name()?, call.member()?);
    let job = wire::decode_for(&call.body, board, member)
        .and_then(|job| check_numbers(&call.api.operations, &job).map(|()| job))
        .map_err(Problem::invalid_job)?;
    Ok((vec![job], options, windows))
}

pub async fn put(call: Box<Call>) -> Result<Reply, Problem> {
    let (jobs, options, windows) = read_put(&call)?;
    let change = call.begin_jobs(&jobs);
    let reply = write_one(&call, jobs, options, windows).await;
    if let Some(change) = change {
        change.finish(&reply);
    }
    reply
}

/// Removes one entry.
pub async fn delete(call: Box<Call>) -> Result<Reply, Problem> {
    let (version, options) = removal_options(&call)?;
    let (board, member) = (call.board_name()?, call.member()?);
    // With `UntilStored` the board may be unknown only because the job that creates it is still in the queue.
    if options.wait == Wait::UntilApplied && call.api.operations.registry.get(board.as_str()).is_none() {
        return Err(call.api.operations.no_board(NoBoard::Unknown).into());
    }
    let targets = Targets::Boards(smallvec![(board, None)]);
    let job = Job { member, targets, op: Some(Op::Remove), version, at: None, meta: None, id: None };
    let change = call.begin_change("an entry was removed");
    let reply = write_one(&call, vec![job], options, None).await;
    change.finish(&reply);
    reply
}

/// Removes all of a member's entries.
pub async fn delete_everywhere(call: Box<Call>) -> Result<Reply, Problem> {
    let (version, options) = removal_options(&call)?;
    let (member, targets) = (call.member()?, Targets::EveryBoard);
    let job = Job { member, targets, op: Some(Op::Remove), version, at: None, meta: None, id: None };
    let change = call.begin_change("a member was removed from every board");
    let reply = write_one(&call, vec![job], options, None).await;
    change.finish(&reply);
    reply
}

fn removal_options(call: &Call) -> Result<(Option<u64>, WriteOptions), Problem> {
    let params = Params::parse(call.query(), &[&WRITES[..], &["version"]].concat())?;
    let options = params.write_options(call.api.operations.default_wait())?;
    let read =
        |text| number(text).ok_or_else(|| invalid_value("version must be an unsigned 64-bit integer", text));
    Ok((params.get("version").map(read).transpose()?, options))
}

/// # Arguments
/// `jobs`: one. In a list from the start, because the future of each frame would have room for a job.
async fn write_one(
    call: &Call,
    jobs: Vec<Job>,
    options: WriteOptions,
    windows: Option<WindowsAsked>,
) -> Result<Reply, Problem> {
    let entered = windows.map(|windows| EnteredInstances::of(call, &jobs, windows));
    let written = call.write(jobs, options).await?;
    let entered = match entered {
        Some(entered) => Box::pin(entered.read(call, &written)).await,
        None => Vec::new(),
    };
    match written.results.into_iter().next() {
        Some(JobResult::Failed(why)) => Err(why.into()),
        Some(JobResult::Stored | JobResult::Parked) => Ok(accepted(&written.token)),
        Some(JobResult::Rejected(reject)) => Err(Problem::rejected_job(&reject)),
        Some(result) => Ok(Reply::object(|object| {
            object.plain("token", &written.token);
            write_result(object, &result, &mut Repeated::default());
            if let Some(entered) = entered.first() {
                entered.write(object);
            }
        })),
        None => Err(Problem::internal()),
    }
}

/// The boards of the parameter `boards`. There is at least one: whoever names none means something else.
fn boards_asked(call: &Call) -> Result<Vec<BoardName>, Problem> {
    let names = list_of(call.query(), "boards")?;
    if names.is_empty() {
        return board_name("").map(|board| vec![board]);
    }
    names.iter().map(|name| board_name(name)).collect()
}

/// The member on several boards.
pub async fn entries_of_member(call: Box<Call>) -> Result<Reply, Problem> {
    let params = call.read_params(&["boards", "cursor", "hidden", "windows"]).await?;
    let hidden = asks_for_hidden(&call, &params)?;
    let windows = params.windows()?;
    let member = call.member()?;
    let mut boards = params.get("boards").map(|_| boards_asked(&call)).transpose()?;
    let after = params.get("cursor").filter(|text| !text.is_empty()).map(|text| {
        let place = number(call.cursor_here(text)?).map(TreeId).filter(|_| boards.is_none());
        place.ok_or_else(|| {
            Problem::bad_parameter(
                "cursor must be the next_cursor of the page before, and cannot be combined with boards",
            )
        })
    });
    let after = after.transpose()?;
    if let Some(boards) = &mut boards {
        if boards.len() > BATCH_MAX {
            return Err(Problem::over_limit(format!(
                "at most {BATCH_MAX} boards are allowed at a time; got {}",
                boards.len()
            )));
        }
        let mut named = std::collections::HashSet::new();
        boards.retain(|board| named.insert(board.clone()));
    }
    call.check_boards_allowed(boards.as_deref().unwrap_or_default())?;
    call.api.operations.wait_for_boards_of_member(&call.reading, &member, boards.as_deref()).await?;
    let id = member.clone();
    let boards = if let Some(boards) = boards {
        BoardSelection::Named(boards)
    } else {
        let prefixes = call.confined_to().and_then(|grant| grant.board_prefixes.clone());
        BoardSelection::All { after, limit: BATCH_MAX, prefixes }
    };
    let answer = call
        .ask_with_metadata(MemberOnBoards {
            member: id,
            boards,
            instance: call.instance_asked(),
            windows: windows.as_ref().map(|windows| windows.iter().map(|(_, choice)| *choice).collect()),
            hidden,
        })
        .await?;
    call.api.operations.check_home_replied(&call.reading, &member)?;
    Ok(Reply::sized(answer.entries.len() * 320 + 200, |object| {
        object.text("member", member.as_str());
        match (call.window(), &windows) {
            // Each entry names its own.
            (_, Some(_)) => object.null("window"),
            (WindowChoice::Default, None) => object.text("window", Window::All.name()),
            (asked, None) => object.plain("window", &asked),
        }
        object.array("entries", &answer.entries, |out, (board, entry)| {
            let mut object = Object::begin(out);
            let (board, instance) = board.split();
            fields::entry(&mut object, board, instance.unwrap_or(Window::All.name()), entry, &answer.as_of);
            object.end();
        });
        object.array("not_found", &answer.not_found, |out, board| json::text(out, board.as_str()));
        // It may have a profile and be on no board. Who may see some boards is told of the members there.
        if let (Some(itself), None) = (&answer.itself, call.confined_to()) {
            fields::profile(object, &itself.profile);
        }
        call.write_next_cursor(object, answer.next.map(|TreeId(place)| place.to_string()));
        call.write_answer_end(object, &answer.as_of);
    }))
}
