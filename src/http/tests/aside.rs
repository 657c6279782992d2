//! Work that is done apart from the threads that connections share.

use std::future::pending;

use tokio::sync::oneshot;

use crate::http::tests::start;

#[tokio::test]
async fn it_ends_with_whoever_waits_for_it_and_takes_nobody_along_when_it_panics() {
    let fixture = start(1);
    assert_eq!(fixture.api.aside(async { 7 }).await, Some(7));
    assert_eq!(fixture.api.aside(async { assert!(never(), "it panics") }).await, None);
    let (held, released) = oneshot::channel::<()>();
    let work = fixture.api.aside(async move {
        let _held = held;
        pending::<()>().await;
    });
    tokio::select! {
        biased;
        _ = work => panic!("it never ends by itself"),
        () = tokio::task::yield_now() => {}
    }
    assert!(released.await.is_err(), "it goes on although nobody waits");
}

fn never() -> bool {
    std::hint::black_box(false)
}
