import { randomInt } from "node:crypto";

// Our own words: dictionaries hold many that nobody wants to read in an address.
const ADJECTIVES = `able agile airy alert amber apt azure bold brave breezy bright brisk calm
  candid cheery clear clever cosy crisp curious daring deft eager early earnest easy fair fancy
  fast fine fluffy fond free fresh gentle glad golden good grand happy hardy humble jolly keen
  kind lively loyal lucky lunar mellow merry mighty mild misty modest neat nimble noble novel
  patient plucky polite proud quick quiet rapid ready robust rosy royal serene sharp shiny silent
  silver simple sleek smart smooth snowy solar solid spry steady sturdy sunny super swift tidy
  tiny trusty vivid warm wise witty young zesty`.split(/\s+/);
const ANIMALS = `alpaca antelope badger bear beaver bee bison bobcat buffalo camel canary caribou
  cheetah chinook cicada civet cobra condor coyote crane cricket crow deer dingo dolphin dove
  dragonfly duck eagle egret elk emu falcon ferret finch firefly flamingo fox gazelle gecko gibbon
  giraffe goose grouse hamster hare hawk hedgehog heron horse hummingbird ibex ibis iguana impala
  jackal jaguar jay kestrel kingfisher kiwi koala lark lemur leopard lion llama lynx magpie manatee
  marmot marten mongoose moose newt ocelot octopus opossum orca osprey otter owl panda panther
  parrot pelican penguin pheasant pony porcupine puffin puma quail rabbit raven robin salmon seal
  sparrow squirrel stork swallow swan tapir tiger toucan trout turtle walrus weasel whale wolf
  wombat wren yak zebra`.split(/\s+/);

/** A slug such as `brave-otter-42`, one of about a hundred million. */
export function generateSlug(): string {
  return `${pick(ADJECTIVES)}-${pick(ANIMALS)}-${randomInt(10, 10_000)}`;
}

function pick(words: readonly string[]): string {
  const word = words[randomInt(words.length)];
  if (word === undefined) throw new Error("the word list is empty");
  return word;
}
