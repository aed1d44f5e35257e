//! Every target runs on its corpus, and on a fixed number of mutated inputs that are the same each time.

#![allow(clippy::print_stdout, reason = "shown when a test fails")]

use gudgeon_fuzz::{
    TARGETS, Target, corpus,
    mutate::{Random, mutate},
    run,
};

/// Mutated inputs of each target.
const MUTATED: usize = 100;

fn check(name: &str) {
    let target: &Target = TARGETS.iter().find(|target| target.name == name).expect("a target");
    let inputs = corpus::inputs(target);
    for (name, input) in &inputs {
        println!("{name}");
        run(target, input);
    }
    let inputs: Vec<_> = inputs.into_iter().map(|input| input.1).collect();
    let mut random = Random::new(1);
    for number in 0..MUTATED {
        let input = mutate(&mut random, &inputs);
        println!("mutated input {number}:\n{}", input.escape_ascii());
        run(target, &input);
    }
}

macro_rules! targets {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                check(stringify!($name));
            }
        )*

        #[test]
        fn every_target_is_tested() {
            let tested = [$(stringify!($name)),*];
            assert_eq!(TARGETS.iter().map(|target| target.name).collect::<Vec<_>>(), tested);
        }
    };
}

targets! { engine endpoint client sse uri_template schema sealed_state dialects }
