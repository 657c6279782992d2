namespace Ranktree.Tests { internal sealed class ReadmeTests { } }
