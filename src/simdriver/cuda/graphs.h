// Graphs: in the making.
#pragma once
